"""Settings that are each accepted and do not go together."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import orjson

MADE_BY_THE_RUN = ("model", "messages", "tools", "stream", "n")
NAMES_ITS_COSTS = "openrouter.ai"


def combinations(values: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each of them."""
    yield from _reasoning(values)
    yield from _providers(values)
    yield from _extra_body(values["extra_body"])
    yield from _costs(values)


def _reasoning(values: dict[str, Any]) -> Iterator[str]:
    effort, tokens = values["reasoning_effort"], values["reasoning_max_tokens"]
    off = "reasoning_disabled: true" if values["reasoning_disabled"] else "reasoning_effort: none"
    is_off = values["reasoning_disabled"] or effort == "none"
    if is_off and values["require_reasoning"] == "true":
        yield f"require_reasoning: true with {off} would discard every row; set require_reasoning to auto or false"
    if values["reasoning_disabled"] and (effort not in ("auto", "none") or tokens is not None):
        other = f"reasoning_max_tokens: {tokens}" if tokens is not None else f"reasoning_effort: {effort}"
        yield f"reasoning_disabled: true does not go with {other}; take one of them out"
    elif effort != "auto" and tokens is not None:
        yield f"reasoning_effort: {effort} does not go with reasoning_max_tokens: {tokens}; take one of them out"


def _providers(values: dict[str, Any]) -> Iterator[str]:
    allowed, ignored = (
        {name.strip() for name in values[key].split(",")} - {""} for key in ("providers_allowed", "providers_ignored")
    )
    if both := sorted(allowed & ignored):
        yield f"providers_allowed and providers_ignored both name {', '.join(both)}; take it out of one of them"


def _extra_body(text: str) -> Iterator[str]:
    try:
        body = orjson.loads(text or "{}")
    except orjson.JSONDecodeError as error:
        body = f"no JSON: {error}"
    if not isinstance(body, dict):
        said = body if isinstance(body, str) and body.startswith("no JSON") else "no JSON object"
        yield f'extra_body: {text!r:.80} is {said}; expected such as {{"top_k": 20}}'
    elif own := [name for name in MADE_BY_THE_RUN if name in body]:
        yield f"extra_body: {', '.join(own)} cannot be set there: the run itself makes it"


def _costs(values: dict[str, Any]) -> Iterator[str]:
    limits = [name for name in ("max_cost", "max_cost_per_prompt") if values[name] is not None]
    prices = [name for name in ("price_prompt_per_million", "price_completion_per_million") if values[name] is not None]
    if len(prices) == 1:
        yield f"{prices[0]} is set alone; set the price of the other kind of tokens too, 0 where it is free"
    host = urlsplit(values["base_url"]).hostname or ""
    named = host == NAMES_ITS_COSTS and not values["model"].startswith("local/")
    if limits and not prices and not named:
        yield (
            f"{limits[0]} needs to know what tokens cost, which {NAMES_ITS_COSTS} alone is known to tell; set "
            "price_prompt_per_million and price_completion_per_million, 0 where answers name their cost"
        )
