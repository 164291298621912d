"""Settings that are each accepted and do not go together."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from trajectile.configuration.schema import schema

LISTENS = re.compile(r"(?<!\$)\{port\}")  # ${port} is the shell's
MADE_BY_THE_RUN = ("model", "messages", "tools", "stream", "n")
NAMES_ITS_COSTS = "openrouter.ai"
SECRET = re.compile(r"key|token|secret|password", re.IGNORECASE)
# What a kind of sandbox has nothing of.
OF_CONTAINERS = ("sandbox_memory", "sandbox_cpus", "sandbox_pids", "sandbox_tmpfs", "sandbox_read_only")
LACKING = {
    "local": (*OF_CONTAINERS, "sandbox_user", "sandbox_mounts"),
    "singularity": ("sandbox_tmpfs", "sandbox_user"),
    "modal": ("sandbox_pids", "sandbox_tmpfs", "sandbox_read_only", "sandbox_user", "sandbox_mounts"),
}


def combinations(values: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each of them."""
    yield from _reasoning(values)
    yield from _providers(values)
    yield from _extra_body(values["extra_body"])
    yield from _costs(values)
    yield from _context(values)
    yield from _sandbox(values)
    yield from _serving(values)
    yield from _web(values)
    yield from _browser(values["browser_cdp_url"])


def _context(values: dict[str, Any]) -> Iterator[str]:
    window, answer = values["context_window"], values["max_tokens"] or 0
    if values["context_trimming"] == "trim" and (window is None or window <= answer):
        than = f", more than max_tokens: {answer}" if answer else ""
        yield f"context_trimming: trim needs context_window, the tokens that the model takes in all{than}"


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
    named = host == NAMES_ITS_COSTS and not values["model"].startswith("local/") and not values["serve_command"]
    if limits and not prices and not named:
        yield (
            f"{limits[0]} needs to know what tokens cost, which {NAMES_ITS_COSTS} alone is known to tell; set "
            "price_prompt_per_million and price_completion_per_million, 0 where answers name their cost"
        )


def _serving(values: dict[str, Any]) -> Iterator[str]:
    if not values["serve_command"]:
        return
    if values["base_url"] != schema()["properties"]["base_url"]["default"]:
        yield "serve_command starts a server and base_url names another one; take one of them out"
    if values["model"].startswith("local/"):
        yield (
            f"model: {values['model']} brings its own server; take serve_command out, or give model the name that the "
            "server of serve_command has for it"
        )
    if not LISTENS.search(values["serve_command"]):
        yield "serve_command: {port} is missing; the server must listen where it is told, such as --port {port}"


def _web(values: dict[str, Any]) -> Iterator[str]:
    provider = values["web_provider"]
    if values["web_base_url"] and provider in ("auto", "searxng", "ddgs"):
        instead = (
            "searxng_url is for that"
            if provider == "searxng"
            else "set web_provider to tavily, exa, firecrawl or brave"
        )
        yield f"web_base_url does not go with web_provider: {provider}; {instead}"


def _browser(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    given = [name for name, value in parse_qsl(parts.query) if SECRET.search(name) and value != "{key}"]
    if given or parts.password:
        yield (
            f"browser_cdp_url: {given[0] if given else 'a password'} cannot be set there; put the key into the "
            "environment as TRAJECTILE_BROWSER_API_KEY and {key} in its place"
        )


def _sandbox(values: dict[str, Any]) -> Iterator[str]:
    """Whoever sets a limit counts on it."""
    kind = values["sandbox"]
    for name in LACKING.get(kind, ()):
        if values[name]:
            others = " or ".join(other for other in ("docker", *LACKING) if name not in LACKING.get(other, ()))
            given = f"{name}: {values[name]} cannot be had with sandbox: {kind}"
            yield f"{given}; leave it out, or set sandbox to {others}"
