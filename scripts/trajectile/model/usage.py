"""What a call cost, in whichever fields the provider says so."""

from typing import Any

from trajectile.model.settings import ModelSettings
from trajectile.rows import Usage

COUNT_MAX = 2**53


TOKENS_PRICED = 1e6


def read_usage(value: Any, settings: ModelSettings | None = None) -> Usage:
    """Read a usage object; what is missing or no sensible number counts as 0.

    An answer that names no cost is priced by the settings.
    """
    usage = value if isinstance(value, dict) else {}
    read = _read(usage)
    if settings and usage.get("cost") is None:
        read.cost = _price(read, settings)
    return read


def _price(usage: Usage, settings: ModelSettings) -> float:
    prompt = usage.prompt_tokens * (settings.price_prompt or 0)
    return (prompt + usage.completion_tokens * (settings.price_completion or 0)) / TOKENS_PRICED


def _read(usage: dict[str, Any]) -> Usage:
    prompt = _mapping(usage.get("prompt_tokens_details"))
    completion = _mapping(usage.get("completion_tokens_details"))
    return Usage(
        prompt_tokens=int(_number(usage.get("prompt_tokens"))),
        completion_tokens=int(_number(usage.get("completion_tokens"))),
        reasoning_tokens=int(_number(completion.get("reasoning_tokens"))),
        cached_tokens=int(_number(prompt.get("cached_tokens") or usage.get("prompt_cache_hit_tokens"))),
        cost=float(_number(usage.get("cost"))),
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float:
    sound = isinstance(value, int | float) and not isinstance(value, bool)
    return value if sound and 0 <= value <= COUNT_MAX else 0
