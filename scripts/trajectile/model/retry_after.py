"""How long a server asks to be left alone."""

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any


def asked_wait_s(headers: Mapping[str, str], metadata: Mapping[str, Any]) -> float | None:
    """Return the seconds to wait named by Retry-After (seconds or date), retry-after-ms or OpenRouter's reset time.

    `metadata` is that of OpenRouter's error body. None where nothing usable is named.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds:
        return milliseconds / 1000
    return _retry_after_s(headers.get("retry-after")) or _reset_s(metadata.get("headers"))


def _retry_after_s(value: str | None) -> float | None:
    if not value:
        return None
    seconds = _number(value)
    return seconds if seconds is not None else _until_s(value)


def _until_s(date: str) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _reset_s(headers: Any) -> float | None:
    """Return the time until X-RateLimit-Reset, which OpenRouter gives in milliseconds of the Unix epoch."""
    value = _number(headers.get("X-RateLimit-Reset")) if isinstance(headers, dict) else None
    return max(0.0, value / 1000 - time.time()) if value else None


def _number(value: Any) -> float | None:
    """Return a finite, positive number, None for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 <= number < float("inf") else None
