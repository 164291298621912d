"""A constrained reply of the engine turned back into an OpenAI message."""

import json
import re
from typing import Any, NamedTuple
from uuid import uuid4

from trajectile.model.local.schemas import Json

TEXT = r'"(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*'
CUT_THOUGHT = re.compile(rf'"thought"\s*:\s*({TEXT}")')
CUT_CALL = re.compile(rf'"tool"\s*:\s*({TEXT}")\s*,\s*"arguments"\s*:\s*(.*)', re.DOTALL)
CUT_ANSWER = re.compile(rf'"answer"\s*:\s*({TEXT})')


class Reply(NamedTuple):
    """A message with its finish_reason: `tool_calls`, `stop` or `length`."""

    message: Json
    finish_reason: str


def read_reply(text: str, engine_reason: str) -> Reply:
    """The engine's JSON text as a message; a text cut by max_tokens keeps what came, under `length`."""
    try:
        fields = json.loads(text)
    except ValueError:
        return Reply(_cut_message(text), "length" if engine_reason == "length" else "stop")
    if "tool" in fields:
        arguments = json.dumps(fields["arguments"], ensure_ascii=False)
        return Reply(_call_message(fields.get("thought"), fields["tool"], arguments), "tool_calls")
    return Reply(_message(fields.get("thought"), content=_as_text(fields["answer"])), "stop")


def _as_text(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _cut_message(text: str) -> Json:
    found = CUT_THOUGHT.search(text)
    thought = json.loads(found[1], strict=False) if found else None
    if call := CUT_CALL.search(text):
        return _call_message(thought, json.loads(call[1]), call[2])
    answer = CUT_ANSWER.search(text)
    return _message(thought, content=json.loads(answer[1] + '"', strict=False) if answer else "")


def _paired(text: str) -> str:
    """The text with half surrogate pairs, which the grammar lets through as escapes, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _call_message(thought: str | None, name: str, arguments: str) -> Json:
    call = {
        "id": f"call_{uuid4().hex[:24]}",
        "type": "function",
        "function": {"name": name, "arguments": _paired(arguments)},
    }
    return _message(thought, content=None, tool_calls=[call])


def _message(thought: str | None, content: str | None, **fields: Any) -> Json:
    reasoning = {"reasoning_content": _paired(thought)} if thought else {}
    text = None if content is None else _paired(content)
    return {"role": "assistant", "content": text, **fields, **reasoning}
