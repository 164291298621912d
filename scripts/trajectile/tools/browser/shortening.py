"""Values of a result, cut to a size."""

import json
from typing import Any

from trajectile.sandbox.output import cut


def shorten(value: Any, limit_bytes: int) -> Any:
    """A text less its middle, a list less its end, where it has more than so many bytes; others as they are."""
    if isinstance(value, str):
        return cut(value, limit_bytes)
    return _items(value, limit_bytes) if isinstance(value, list) else value


def _items(items: list[Any], limit_bytes: int) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        limit_bytes -= len(json.dumps(item, ensure_ascii=False).encode("utf-8", "replace"))
        if limit_bytes < 0:
            return [*kept, f"… {len(items) - len(kept)} more"]
        kept.append(item)
    return kept
