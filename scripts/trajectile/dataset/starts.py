"""The start of a conversation: a prompt text, ShareGPT turns or chat messages, as turns."""

import json
from typing import Any

from trajectile.dataset.raw_rows import kind_of
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
    """Return the turns that a prompt stands for; the last one is the user's or a tool's."""
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
    if not any(turn.value.strip() for turn in turns if turn.from_ in ("human", "tool")):
        raise BadStart("the prompt is empty: no turn of the user holds a text")
    return turns


def _turn(number: int, item: Any) -> Turn:
    if not isinstance(item, dict):
        raise BadStart(f"turn {number} is {_shown(item)}, an object with 'role' and 'content' was expected")
    role = item.get("from", item.get("role"))
    if not isinstance(role, str) or role not in ROLES:
        what = f"the role {role!r:.40}" if role else "no role"
        raise BadStart(f"turn {number} has {what}: 'role' (or 'from') must be one of {', '.join(ROLES)}")
    calls = _calls(number, item.get("tool_calls"))
    return Turn(
        ROLES[role],
        _text(number, item.get("value", item.get("content")), calls),
        str(item.get("reasoning") or item.get("reasoning_content") or ""),
        calls,
        str(item.get("tool_call_id") or ""),
        str(item.get("name") or ""),
    )


def _text(number: int, value: Any, calls: list[ToolCall]) -> str:
    if isinstance(value, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in value):
        return "".join(part["text"] for part in value)
    if value is None and calls:
        return ""
    if not isinstance(value, str):
        raise BadStart(f"turn {number} holds {_shown(value)}, a text was expected")
    return value


def _calls(number: int, calls: Any) -> list[ToolCall]:
    if calls is None:
        return []
    if not isinstance(calls, list):
        raise BadStart(f"turn {number} has {_shown(calls)} as tool_calls, a list was expected")
    return [_call(number, call) for call in calls]


def _call(number: int, call: Any) -> ToolCall:
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise BadStart(f"turn {number} has a tool call without a name")
    arguments = function.get("arguments", "{}")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(str(call.get("id") or ""), function["name"], text)


def _shown(value: Any) -> str:
    """Name a value's JSON type, with its beginning."""
    if value is None:
        return "null"
    text = json.dumps(value, ensure_ascii=False, default=str)
    kind = kind_of(value)
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} ({text if len(text) <= 40 else text[:40] + '…'})"
