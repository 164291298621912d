"""Provider routing, reasoning and other controls: what goes over the wire, and what does not go together."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers import Job, Recorder
from trajectile.agent.controls import request_controls
from trajectile.configuration.settings import load_settings
from trajectile.errors import UserError
from trajectile.model.serving.command import filled, syntax_problem

EXAMPLES = Path(__file__).parents[1] / "config" / "examples"
FIELDS = {"model", "messages", "tools"}
CONTROLS = [
    ({}, {}),
    ({"providers_allowed": "anthropic,openai"}, {"provider": {"only": ["anthropic", "openai"]}}),
    ({"providers_ignored": " a , b,"}, {"provider": {"ignore": ["a", "b"]}}),
    ({"providers_order": "b,a", "provider_sort": "latency"}, {"provider": {"order": ["b", "a"], "sort": "latency"}}),
    ({"provider_sort": "price"}, {"provider": {"sort": "price"}}),
    ({"provider_sort": "throughput"}, {"provider": {"sort": "throughput"}}),
    ({"reasoning_effort": "none"}, {"reasoning": {"effort": "none"}}),
    ({"reasoning_effort": "XHIGH"}, {"reasoning": {"effort": "xhigh"}}),
    ({"reasoning_max_tokens": "2000"}, {"reasoning": {"max_tokens": 2000}}),
    ({"reasoning_disabled": "true"}, {"reasoning": {"enabled": False}}),
    ({"reasoning_disabled": True, "reasoning_effort": "none"}, {"reasoning": {"enabled": False}}),
    ({"extra_body": '{"top_k": 20}', "provider_sort": "price"}, {"top_k": 20, "provider": {"sort": "price"}}),
    ({"max_tokens": 5, "temperature": 0, "top_p": 0.5}, {"max_tokens": 5, "temperature": 0, "top_p": 0.5}),
]


class Elsewhere(Recorder):
    """A server that stands for the endpoint of a configuration."""


def sent(root: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Return the body that a prompt's request carried, less what every request does."""
    root.mkdir(exist_ok=True)
    with Elsewhere() as server:
        job = Job(root, server, ["a"], **{**config, "base_url": server.base_url})  # type: ignore[arg-type]
        assert job.here() == 0
        job.release()
        [(_, body)] = server.requests
    assert body.keys() >= FIELDS
    return {name: value for name, value in body.items() if name not in FIELDS}


@pytest.mark.parametrize(("config", "wanted"), CONTROLS, ids=lambda value: str(value)[:50])
def test_a_setting_goes_over_the_wire_as_documented(tmp_path: Path, config: dict[str, Any], wanted: Any) -> None:
    assert sent(tmp_path, config) == wanted


EXAMPLE_BODIES = {
    "openrouter": {
        "provider": {"only": ["anthropic", "google-vertex"], "sort": "throughput"},
        "reasoning": {"effort": "medium"},
    },
    "nous_portal": {"reasoning": {"effort": "medium"}},
    "vllm": {"chat_template_kwargs": {"enable_thinking": True}, "top_k": 20, "temperature": 0.6, "top_p": 0.95},
    "llama_cpp": {"cache_prompt": True},
}


@pytest.mark.parametrize("name", [path.stem for path in sorted(EXAMPLES.glob("*.yaml"))])
def test_each_example_loads_and_asks_as_it_says(tmp_path: Path, name: str) -> None:
    config = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
    settings = load_settings(config)
    assert settings.base_url.startswith("http") and settings.model == config["model"]
    assert syntax_problem(filled(settings.serve_command, port=1, model=settings.model)) == ""
    config["serve_command"] = ""  # the stand-in serves
    free = {"price_prompt_per_million": 0, "price_completion_per_million": 0}  # the stand-in names no cost
    assert sent(tmp_path, config | free) == EXAMPLE_BODIES[name]


TOGETHER = [
    ({"reasoning_disabled": True, "require_reasoning": True}, "require_reasoning: true with reasoning_disabled: true"),
    ({"reasoning_effort": "none", "require_reasoning": "true"}, "require_reasoning: true with reasoning_effort: none"),
    ({"reasoning_disabled": True, "reasoning_effort": "high"}, "does not go with reasoning_effort: high"),
    ({"reasoning_disabled": True, "reasoning_max_tokens": 9}, "does not go with reasoning_max_tokens: 9"),
    ({"reasoning_effort": "low", "reasoning_max_tokens": 9}, "reasoning_effort: low does not go with"),
    ({"providers_allowed": "a,b", "providers_ignored": "b"}, "providers_allowed and providers_ignored both name b"),
    ({"extra_body": "{"}, "extra_body: '{' is no JSON"),
    ({"extra_body": "[1]"}, "extra_body: '[1]' is no JSON object"),
    ({"extra_body": '{"messages": []}'}, "extra_body: messages cannot be set there"),
    ({"price_prompt_per_million": 1}, "price_prompt_per_million is set alone"),
    ({"model": "m", "base_url": "http://h/v1", "max_cost": 1}, "max_cost needs to know what tokens cost"),
    ({"model": "local/smollm2-135m", "max_cost_per_prompt": 1}, "max_cost_per_prompt needs to know"),
    ({"provider_sort": "speed"}, "'speed' is not accepted; expected auto or price or throughput or latency"),
    ({"reasoning_effort": "lots"}, "'lots' is not accepted; expected auto or none or minimal"),
    ({"max_cost": 0}, "max_cost: 0 is not accepted; expected number above 0, or null"),
]


@pytest.mark.parametrize(("config", "message"), TOGETHER, ids=lambda value: str(value)[:50])
def test_what_does_not_go_together_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        load_settings(config)
    assert message in str(error.value)


def test_limits_on_cost_need_no_prices_where_answers_name_their_cost() -> None:
    limits = {"max_cost": 1, "max_cost_per_prompt": 0.1}
    assert load_settings({"model": "m", **limits}).max_cost == 1
    prices = {"price_prompt_per_million": 1, "price_completion_per_million": 0}
    assert load_settings({"model": "m", "base_url": "http://h/v1", **limits, **prices}).max_cost == 1


def test_no_control_is_sent_that_was_not_asked_for() -> None:
    assert request_controls(load_settings({})) == {}
