"""What a server answers, as text for the model."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import orjson

from trajectile.sandbox.output import cut
from trajectile.tools.tool import error

if TYPE_CHECKING:
    from mcp.types import CallToolResult

HIDDEN = "[hidden]"


def to_result(answer: "CallToolResult", limit_bytes: int, secrets: Iterable[str]) -> str:
    """The text of all its parts, an error result where the server says that the call failed."""
    text = "\n".join(_part(part) for part in answer.content)
    if not text.strip():
        text = "[no content]" if answer.structured_content is None else _json(answer.structured_content)
    text = hide(text, secrets)
    return error(text) if answer.is_error else cut(text, limit_bytes)


def _part(part: Any) -> str:
    if part.type == "text":
        return str(part.text)
    if part.type in ("image", "audio"):
        return f"[{part.type}, {part.mime_type}, {_size(part.data)} bytes]"
    if part.type == "resource_link":
        return f"[resource {part.uri}: {part.description or part.title or part.name}]"
    content = getattr(part, "resource", None)
    if content is None:
        return f"[{part.type}]"
    if hasattr(content, "text"):
        return f"[resource {content.uri}]\n{content.text}"
    return f"[resource {content.uri}, {content.mime_type or 'of an unknown kind'}, {_size(content.blob)} bytes]"


def _size(base64: str) -> int:
    return len(base64) * 3 // 4 - base64[-2:].count("=")


def _json(data: Any) -> str:
    return orjson.dumps(data).decode()


def hide(text: str, secrets: Iterable[str]) -> str:
    """The text with each of `secrets`, the longest first, replaced."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text
