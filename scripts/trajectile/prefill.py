"""Example messages that are put before each prompt and appear in no row."""

from pathlib import Path
from typing import Any

import orjson

from trajectile.errors import UserError

ROLES = ("system", "user", "assistant", "tool")


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
    if not isinstance(messages, list) or not all(_is_message(message) for message in messages):
        raise UserError(
            f'prefill_messages_file: {file} must hold an array of messages such as {{"role": "user", "content": "…"}}'
        )
    return messages


def _is_message(message: object) -> bool:
    return isinstance(message, dict) and message.get("role") in ROLES and isinstance(message.get("content"), str)
