"""Conversations in plain text: what small models' templates drop (tools, calls, results) is written out."""

import json
from collections.abc import Iterable
from typing import Any

from trajectile.model.local.schemas import Allowed, Json

DESCRIPTION_CHARS = 160


class BadRequest(Exception):
    """The request cannot be answered as it is; the message tells the caller why."""


def render_messages(messages: list[Json], offered: list[Json], allowed: Allowed) -> list[Json]:
    """Messages with roles system, user and assistant only; one system text comes first and explains the reply."""
    system = [_text(m) for m in messages if m["role"] in ("system", "developer")]
    names = {call["id"]: call["function"]["name"] for m in messages for call in calls_of(m) if "id" in call}
    turns = [_turn(m, names, allowed.thought) for m in messages if m["role"] not in ("system", "developer")]
    parts = [*system, _tool_text(offered), _reply_text(allowed)]
    return [{"role": "system", "content": "\n\n".join(filter(None, parts))}, *_joined(turns)]


def calls_of(message: Json) -> list[Json]:
    """The tool calls of a message, [] when it has none."""
    return message.get("tool_calls") or []


def _turn(message: Json, names: dict[str, str], thought: bool) -> Json:
    role = message["role"]
    if role == "assistant":
        return {"role": "assistant", "content": _assistant_text(message, thought)}
    if role == "tool":
        name = names.get(message.get("tool_call_id", ""), message.get("name", "the tool"))
        return {"role": "user", "content": f"Result of {name}:\n{_text(message)}"}
    if role == "user":
        return {"role": "user", "content": _text(message)}
    raise BadRequest(f"unknown role {role!r}")


def _assistant_text(message: Json, thought: bool) -> str:
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    first = {"thought": reasoning} if thought and reasoning else {}
    calls = [_compact({**first, "tool": name, "arguments": _arguments(text)}) for name, text in _pairs(message)]
    return "\n".join(calls) if calls else _compact({**first, "answer": _text(message)})


def _pairs(message: Json) -> Iterable[tuple[str, str]]:
    return ((call["function"]["name"], call["function"]["arguments"]) for call in calls_of(message))


def _arguments(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(message: Json) -> str:
    content = message.get("content")
    if isinstance(content, list):
        if any(part.get("type") != "text" for part in content):
            raise BadRequest("this model reads text only")
        return "\n".join(part["text"] for part in content)
    return content or ""


def _joined(turns: list[Json]) -> list[Json]:
    """Neighbours of one role become one message: some templates want the roles to alternate."""
    joined: list[Json] = []
    for turn in turns:
        if joined and joined[-1]["role"] == turn["role"]:
            joined[-1]["content"] += "\n\n" + turn["content"]
        else:
            joined.append(turn)
    return joined


def _tool_text(tools: list[Json]) -> str:
    return "\n".join(["You have these tools:", *map(_tool_line, tools)]) if tools else ""


def _tool_line(tool: Json) -> str:
    parameters = tool.get("parameters") or {}
    required = parameters.get("required", [])
    names = [name if name in required else f"{name}?" for name in parameters.get("properties", {})]
    call = _compact({"tool": tool["name"], "arguments": dict.fromkeys(names, "...")})
    first_sentence = (tool.get("description") or "").strip().split("\n")[0].split(". ")[0]
    return f"- {first_sentence[:DESCRIPTION_CHARS]}: {call}"


def _reply_text(allowed: Allowed) -> str:
    thought = '"thought": "<one sentence>", ' if allowed.thought else ""
    call = f'{{{thought}"tool": "<name>", "arguments": {{...}}}}'
    answer = f'{{{thought}"answer": "<text>"}}'
    if not allowed.tools:
        return f"Reply with one JSON object: {answer}"
    if not allowed.answer:
        return f"Call a tool. Reply with one JSON object: {call}"
    return f"Reply with one JSON object. To call a tool: {call}\nWhen the task is done: {answer}"
