"""Settings that steer the endpoint rather than the model: provider routing and reasoning, as a request carries them."""

from typing import Any

import orjson

from trajectile.configuration.settings import Settings


def request_controls(settings: Settings) -> dict[str, Any]:
    """Return what a request carries besides messages, tools and sampling, in the form that OpenRouter documents.

    Nothing that is not set goes over the wire: many servers refuse fields they do not know.
    """
    controls = {"provider": _provider(settings), "reasoning": _reasoning(settings)}
    set_ones = {name: value for name, value in controls.items() if value}
    return set_ones | (orjson.loads(settings.extra_body) if settings.extra_body else {})


def listed(text: str) -> list[str]:
    """Return the names in a text with commas between."""
    return [name for part in text.split(",") if (name := part.strip())]


def _provider(settings: Settings) -> dict[str, Any]:
    lists = {
        "only": listed(settings.providers_allowed),
        "ignore": listed(settings.providers_ignored),
        "order": listed(settings.providers_order),
    }
    sort = {} if settings.provider_sort == "auto" else {"sort": settings.provider_sort}
    return {name: value for name, value in lists.items() if value} | sort


def _reasoning(settings: Settings) -> dict[str, Any]:
    if settings.reasoning_disabled:
        return {"enabled": False}
    if settings.reasoning_max_tokens is not None:
        return {"max_tokens": settings.reasoning_max_tokens}
    return {} if settings.reasoning_effort == "auto" else {"effort": settings.reasoning_effort}
