"""What a call cost, in whichever fields the provider says so."""

from typing import Any

from trajectile.rows import Usage

COUNT_MAX = 2**53


def read_usage(value: Any) -> Usage:
    """Read a usage object; what is missing or no sensible number counts as 0."""
    usage = value if isinstance(value, dict) else {}
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
