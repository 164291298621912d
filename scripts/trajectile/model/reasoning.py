"""Reasoning, whatever the server calls it."""

import re
from typing import Any

FIELDS = ("reasoning", "reasoning_content", "reasoning_details")
_OPENED = re.compile(r"\s*<(think|REASONING_SCRATCHPAD)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_CLOSE = "</think>"
_OPEN = "<think>"


def split(message: dict[str, Any]) -> tuple[str, str]:
    """Return (reasoning, content) of an assistant message in wire form, the same for every spelling of the two."""
    reasoning, content = _from_content(message.get("content"))
    named = _from_fields(message)
    if not named:
        tagged, content = _from_tags(content)
        return "\n\n".join(part for part in (reasoning, tagged) if part), content
    # a server that names the reasoning may repeat it in tags
    return named, _without_blocks(content)[1]


def fields(message: dict[str, Any]) -> dict[str, Any]:
    """Return what of `message` carries reasoning, under the names it came with."""
    return {name: message[name] for name in FIELDS if message.get(name)}


def _from_fields(message: dict[str, Any]) -> str:
    for name in FIELDS[:2]:
        value = message.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    details = message.get("reasoning_details")
    texts = [_detail_text(d) for d in details] if isinstance(details, list) else []
    return "\n\n".join(text for text in texts if text)


def _detail_text(detail: Any) -> str:
    """Return the readable text of a reasoning detail; encrypted details have none."""
    if not isinstance(detail, dict):
        return ""
    value = detail.get("text") or detail.get("summary")
    return value.strip() if isinstance(value, str) else ""


def _from_content(content: Any) -> tuple[str, str]:
    """Return (reasoning, content) of text, null or a list of parts."""
    if isinstance(content, str):
        return "", content
    parts = content if isinstance(content, list) else []
    thoughts = [_part_text(p) for p in parts if _is_thought(p)]
    texts = [_part_text(p) for p in parts if not _is_thought(p)]
    return "\n\n".join(t.strip() for t in thoughts if t.strip()), "".join(texts)


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("thinking", "reasoning")


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    value = part.get("text") or part.get("thinking") or part.get("reasoning") or ""
    if isinstance(value, list):
        return "".join(_part_text(inner) for inner in value)
    return value if isinstance(value, str) else ""


def _from_tags(content: str) -> tuple[str, str]:
    if _CLOSE in content and _OPEN not in content.partition(_CLOSE)[0]:
        content = _OPEN + content
    return _without_blocks(content)


def _without_blocks(content: str) -> tuple[str, str]:
    """Take the reasoning blocks off the front; tags further in are text that the model wrote about."""
    thoughts, end = [], 0
    while match := _OPENED.match(content, end):
        thoughts.append(match[2].strip())
        end = match.end()
    return "\n\n".join(t for t in thoughts if t), content[end:].lstrip() if thoughts else content
