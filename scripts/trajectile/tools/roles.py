"""Models that tools ask beside the run's own: each role has an endpoint, a model, a key and prices of its own."""

from collections.abc import Iterable
from typing import Any

from trajectile.configuration.settings import Settings
from trajectile.model.keys import are_one_server, key_in
from trajectile.model.settings import ModelSettings

ROLES = {"vision": "vision", "browser": "vision", "image_gen": "image", "tts": "tts"}


def key_variable(role: str) -> str:
    """The environment variable of a role's key."""
    return f"TRAJECTILE_{role.upper()}_API_KEY"


def where_set(role: str) -> str:
    """Which settings say where the model of a role is asked, in a sentence."""
    return (
        f"Where it is asked is set by {role}_base_url and {role}_model, its key is {key_variable(role)} in the "
        "environment."
    )


def roles_elsewhere(settings: Settings, toolsets: Iterable[str]) -> list[str]:
    """The roles of these toolsets that are asked at an endpoint of their own."""
    roles = dict.fromkeys(ROLES[name] for name in toolsets if name in ROLES)
    return [role for role in roles if _of(settings, role, "base_url")]


def settings_of(settings: Settings, role: str, run: ModelSettings) -> ModelSettings:
    """How the model of a role is asked: as the run's own, `run`, but for what its settings say."""
    base_url = _of(settings, role, "base_url") or run.base_url
    model = _of(settings, role, "model") or run.model
    same_server = are_one_server(base_url, run.base_url)
    routing = run.extra_body.get("provider") if same_server else None
    if same_server and model == run.model:
        prices = run.price_prompt, run.price_completion
    else:
        prices = settings.vision_price_prompt_per_million, settings.vision_price_completion_per_million
    return ModelSettings(
        base_url=base_url,
        api_key=key_in(key_variable(role)) or (run.api_key if same_server else ""),
        model=model,
        request_timeout_s=_of(settings, role, "timeout"),
        max_retries=run.max_retries,
        concurrency=run.concurrency,
        extra_body={"provider": routing} if routing else {},
        price_prompt=prices[0],
        price_completion=prices[1],
    )


def lacks(settings: Settings, role: str, ability: str) -> str:
    """What a role's tools lack with these settings, in a sentence that names them; "" where nothing."""
    embedded = settings.model.startswith("local/")
    if embedded and not (_of(settings, role, "base_url") and _of(settings, role, "model")):
        return f"the embedded model cannot {ability}; set {role}_base_url and {role}_model to one that can"
    return ""


def timeout_of(settings: Settings, role: str) -> float:
    """The seconds that a role's model may take for one call, retries included."""
    return float(_of(settings, role, "timeout"))


def _of(settings: Settings, role: str, name: str) -> Any:
    return getattr(settings, f"{role}_{name}")
