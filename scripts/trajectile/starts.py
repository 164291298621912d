"""The start of a conversation: a prompt text, ShareGPT turns or chat messages, as turns."""

import json
from typing import Any

from trajectile.rows import ToolCall, Turn

ROLES = {
    "human": "human",
    "user": "human",
    "gpt": "gpt",
    "assistant": "gpt",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "observation": "tool",
}


class BadStart(ValueError):
    """A row has no usable prompt; the message says why."""


def start_turns(start: Any) -> list[Turn]:
    """Return the turns that a prompt stands for; the last one is the user's."""
    if isinstance(start, str):
        if not start.strip():
            raise BadStart("the prompt is empty")
        return [Turn("human", start)]
    if not isinstance(start, list):
        raise BadStart(f"the prompt is {_shown(start)}, a text or a list of turns was expected")
    if not start:
        raise BadStart("the prompt is an empty list")
    turns = [_turn(number, item) for number, item in enumerate(start, 1)]
    if turns[-1].from_ not in ("human", "tool"):
        raise BadStart(f"the conversation ends with a turn of {turns[-1].from_!r}, the user's turn was expected last")
    return turns


def _turn(number: int, item: Any) -> Turn:
    role = item.get("from", item.get("role")) if isinstance(item, dict) else None
    if role not in ROLES:
        raise BadStart(f"turn {number} has no role: expected 'from' or 'role' to be one of {', '.join(ROLES)}")
    value = item.get("value", item.get("content"))
    calls = [_call(number, call) for call in item.get("tool_calls") or []]
    return Turn(
        ROLES[role],
        _text(number, value, calls),
        str(item.get("reasoning") or item.get("reasoning_content") or ""),
        calls,
        str(item.get("tool_call_id") or ""),
        str(item.get("name") or ""),
    )


def _text(number: int, value: Any, calls: list[ToolCall]) -> str:
    if isinstance(value, list) and all(isinstance(part, dict) and "text" in part for part in value):
        return "".join(str(part["text"]) for part in value)
    if value is None and calls:
        return ""
    if not isinstance(value, str):
        raise BadStart(f"turn {number} holds {_shown(value)}, a text was expected")
    return value


def _call(number: int, call: Any) -> ToolCall:
    if not isinstance(call, dict):
        raise BadStart(f"turn {number} has a tool call that is not an object")
    function = call.get("function") or call
    arguments = function.get("arguments", "{}")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(str(call.get("id") or ""), str(function.get("name") or ""), text)


def _shown(value: Any) -> str:
    return "null" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"
