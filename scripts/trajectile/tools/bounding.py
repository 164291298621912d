"""The last bound on a tool's result, whatever made it: valid UTF-8, and no larger than a conversation can bear."""

from typing import Any

import orjson

from trajectile.model.jsontext import clean
from trajectile.sandbox.output import head_and_tail
from trajectile.tools.tool import as_json

# Results in JSON hold bounded text, which escapes make longer.
ESCAPED = 2
SMALLEST_SHARE = 100


def bounded(result: str, limit_bytes: int) -> str:
    """A result as it is where it has at most twice `limit_bytes`, else head and tail of it, or of each long text in
    it where it is a JSON object, so that it stays one."""
    text = clean(result)
    most = ESCAPED * limit_bytes
    if len(text.encode()) <= most:
        return text
    data, share = _object(text), limit_bytes
    while data is not None and share >= SMALLEST_SHARE:
        smaller = as_json(**_cut_within(data, share))
        if len(smaller.encode()) <= most:
            return smaller
        share //= 2
    return _cut(text, limit_bytes)


def _object(text: str) -> dict[str, Any] | None:
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return data if isinstance(data, dict) else None


def _cut_within(value: Any, share: int) -> Any:
    if isinstance(value, dict):
        return {name: _cut_within(part, share) for name, part in value.items()}
    if isinstance(value, list):
        return [_cut_within(part, share) for part in value]
    return _cut(value, share) if isinstance(value, str) else value


def _cut(text: str, limit_bytes: int) -> str:
    return head_and_tail(text, limit_bytes).decode("utf-8", "replace")
