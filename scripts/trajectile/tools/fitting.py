"""Results that pass no size limit and stay valid JSON."""

from collections.abc import Callable, Mapping
from typing import Any

from trajectile.tools.tool import as_json, error


def fitted(shown: Callable[[int], Mapping[str, Any]], limit_bytes: int) -> str:
    """JSON of what `shown` makes with so many bytes for each text, as large as fits; an error where nothing does."""
    share = limit_bytes
    while share:
        text = as_json(**shown(share)).encode("utf-8", "replace")
        if len(text) <= limit_bytes:
            return text.decode()
        share = share * 4 // 5
    return error(f"the result does not fit into {limit_bytes} bytes (output_limit); ask for less")
