"""JSON from and to servers that are not always careful."""

import json
from typing import Any

import orjson

DEPTH_MAX = 200  # what is read can be written again: orjson writes 254 levels, and recursion goes no deeper either


def clean(text: str) -> str:
    """Return `text` with every lone surrogate replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def loads(body: bytes) -> Any:
    """Parse JSON, as leniently as Python does where strict parsing fails: bad UTF-8 and lone surrogates become U+FFFD.

    Raises ValueError for what is not JSON, RecursionError for what is nested deeper than `DEPTH_MAX`.
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = _cleaned(json.loads(body.decode("utf-8-sig", "replace")))
    if body.count(b"[") + body.count(b"{") > DEPTH_MAX and _is_deep(value):
        raise RecursionError("JSON nested too deeply")
    return value


def dumps(value: Any) -> bytes:
    """Serialise to UTF-8 JSON, lone surrogates replaced."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return clean(json.dumps(value, ensure_ascii=False)).encode()


def _is_deep(value: Any) -> bool:
    level = _containers([value])
    for _ in range(DEPTH_MAX):
        level = [inner for outer in level for inner in _containers(outer)]
    return bool(level)


def _containers(outer: list[Any] | dict[str, Any]) -> list[Any]:
    inside = outer.values() if isinstance(outer, dict) else outer
    return [value for value in inside if isinstance(value, list | dict)]


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): _cleaned(item) for key, item in value.items()}
    return value
