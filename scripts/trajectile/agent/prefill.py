"""Example messages that are put before each prompt and appear in no row."""

from pathlib import Path
from typing import Any

import orjson

from trajectile.errors import UserError

ROLES = ("system", "user", "assistant", "tool")
EXAMPLE = '{"role": "user", "content": "…"}'


def load_prefill(file: str) -> list[dict[str, Any]]:
    """Return the messages of a prefill file, a JSON array of chat messages; none where no file is set."""
    if not file:
        return []
    try:
        messages = orjson.loads(Path(file).read_bytes())
    except OSError as error:
        raise UserError(f"prefill_messages_file: {file} cannot be read: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise UserError(f"prefill_messages_file: {file} is not JSON: {error}") from None
    if not isinstance(messages, list):
        raise UserError(f"prefill_messages_file: {file} must hold an array of messages such as {EXAMPLE}")
    for number, message in enumerate(messages, 1):
        if not _is_message(message):
            raise UserError(f"prefill_messages_file: {file}: item {number} is no message such as {EXAMPLE}")
    return messages


def _is_message(message: Any) -> bool:
    """Tell whether a message can be sent: an assistant that calls tools may say nothing."""
    if not isinstance(message, dict) or message.get("role") not in ROLES:
        return False
    content, calls = message.get("content"), message.get("tool_calls")
    if calls and not (isinstance(calls, list) and all(map(_is_call, calls))):
        return False
    return isinstance(content, str) or (content is None and message["role"] == "assistant" and bool(calls))


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    texts = (call.get("id"), function.get("name"), function.get("arguments")) if isinstance(function, dict) else (None,)
    return all(isinstance(text, str) for text in texts)
