"""JSON from and to servers that are not always careful."""

import json
from typing import Any

import orjson


def clean(text: str) -> str:
    """Return `text` with every lone surrogate replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def loads(body: bytes) -> Any:
    """Parse JSON, as leniently as Python does where strict parsing fails: bad UTF-8 and lone surrogates become U+FFFD.

    Raises ValueError for what is not JSON, RecursionError for what is nested too deeply.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return _cleaned(json.loads(body.decode("utf-8-sig", "replace")))


def dumps(value: Any) -> bytes:
    """Serialise to UTF-8 JSON, lone surrogates replaced."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return clean(json.dumps(value, ensure_ascii=False)).encode()


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): _cleaned(item) for key, item in value.items()}
    return value
