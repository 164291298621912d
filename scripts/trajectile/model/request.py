"""The body of a chat-completions request."""

from typing import Any

import orjson

from trajectile.model import jsontext
from trajectile.model.settings import ModelSettings

OPTIONAL = ("max_tokens", "temperature", "top_p", "seed")


def build_body(settings: ModelSettings, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Put a request together; `extra_body` has the last word."""
    body: dict[str, Any] = {"model": settings.model, "messages": [_sendable(m) for m in messages]}
    if tools:
        body["tools"] = tools
    body |= {name: value for name in OPTIONAL if (value := getattr(settings, name)) is not None}
    return body | settings.extra_body


def encode(settings: ModelSettings, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> bytes:
    """Serialise the request of `build_body`."""
    return jsontext.dumps(build_body(settings, messages, tools))


def _sendable(message: dict[str, Any]) -> dict[str, Any]:
    """Return `message` with arguments that are not a JSON object as `{}` and empty tool names as `unnamed`.

    Many chat templates parse the arguments of past calls and answer 400 or 500 to text that is no JSON object, which
    would end every conversation in which the model slipped once.
    """
    calls = message.get("tool_calls")
    if not calls or all(_is_sendable(call["function"]) for call in calls):
        return message
    return message | {"tool_calls": [call | {"function": _mended(call["function"])} for call in calls]}


def _is_sendable(function: dict[str, Any]) -> bool:
    return bool(function["name"]) and _is_object(function["arguments"])


def _mended(function: dict[str, Any]) -> dict[str, Any]:
    arguments = function["arguments"]
    return {"name": function["name"] or "unnamed", "arguments": arguments if _is_object(arguments) else "{}"}


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(orjson.loads(arguments), dict)
    except orjson.JSONDecodeError:
        return False
