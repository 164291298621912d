"""What happens when a run goes on with other settings."""

from typing import Any

import pytest
from test_identity import BASE, identity, settings
from trajectile.configuration.settings import load_settings
from trajectile.errors import UserError
from trajectile.planning.settling import settle


def test_the_same_settings_and_free_ones_go_on() -> None:
    assert settle(settings(), None) == settings()
    for free in ({}, {"batch_size": 3}, {"max_samples": 11}, {"max_samples": 10}):
        assert settle(settings(**free), identity()) == settings(**free)
    assert settle(settings(max_samples=11), identity(max_samples=11)).max_samples == 11


def test_a_run_that_served_its_model_itself_goes_on_so() -> None:
    default = load_settings({}).base_url
    served = {"base_url": default, "serve_command": "vllm serve a --port {port}"}
    own = settle(settings(settings_change="run"), identity(**served))
    assert (own.base_url, own.serve_command) == (default, served["serve_command"])
    own = settle(settings(settings_change="run", **served), identity())
    assert (own.base_url, own.serve_command) == (BASE["base_url"], "")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"model": "b"}, '  model: "a" in the run, "b" now'),
        ({"max_turns": 3}, "  max_turns: 10 in the run, 3 now"),
        ({"temperature": 1}, "  temperature: null in the run, 1.0 now"),
        ({"max_samples": 9}, "  max_samples: 10 in the run, 9 now"),
        ({"base_url": "http://two.example/v1"}, '  base_url_host: "one.example" in the run, "two.example" now'),
        ({"ephemeral_system_prompt": "x"}, '  ephemeral_system_prompt: "" in the run, SHA-256 2d711642b726… now'),
    ],
)
def test_other_fixed_settings_are_refused_with_the_difference(change: dict[str, Any], line: str) -> None:
    with pytest.raises(UserError) as error:
        settle(settings(**change), identity())
    assert str(error.value).splitlines() == [
        "run r was begun with other settings:",
        line,
        "Choose another run_name, or set settings_change to run (use the run's own) or keep (use the new ones).",
    ]


def test_every_difference_is_listed() -> None:
    with pytest.raises(UserError) as error:
        settle(settings(model="b", seed=1, max_turns=2), identity())
    assert len(str(error.value).splitlines()) == 5


def test_a_system_prompt_that_is_not_given_again_is_asked_for_first() -> None:
    with pytest.raises(UserError) as error:
        settle(settings(), identity(ephemeral_system_prompt="secret plan"))
    _, difference, advice = str(error.value).splitlines()
    assert difference.endswith('… in the run, "" now')
    assert advice.startswith("Give the same ephemeral_system_prompt again, choose another run_name, or set settings_")


def test_fewer_samples_than_all_are_fewer() -> None:
    with pytest.raises(UserError, match="max_samples: null in the run, 5 now"):
        settle(settings(max_samples=5), identity(max_samples=None))
    assert settle(settings(max_samples=None), identity()).max_samples is None


def test_run_takes_the_runs_own_and_leaves_the_rest() -> None:
    given = {"model": "b", "max_turns": 3, "max_samples": 9, "base_url": "http://two.example/v1", "batch_size": 7}
    settled = settle(settings(settings_change="run", **given), identity())
    assert settled == settings(settings_change="run", batch_size=7)
    grown = settle(settings(settings_change="run", model="b", max_samples=99), identity())
    assert (grown.model, grown.max_samples) == ("a", 99)


def test_run_asks_for_a_text_that_run_json_does_not_keep() -> None:
    with pytest.raises(UserError, match="needs the run's own ephemeral_system_prompt given again, as it was"):
        settle(settings(settings_change="run"), identity(ephemeral_system_prompt="secret plan"))


def test_keep_goes_on_with_the_new_and_remembers_both() -> None:
    first = identity()
    changed = settle(settings(settings_change="keep", model="b"), first)
    second = identity(first, model="b")
    assert changed.model == "b" and second.settings_digest != first.settings_digest
    assert {digest: frozen["model"] for digest, frozen in second.history.items()} == {
        first.settings_digest: "a",
        second.settings_digest: "b",
    }
    assert second.created == first.created
