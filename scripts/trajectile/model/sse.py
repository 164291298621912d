"""An answer that comes as a stream of events although none was asked for."""

from typing import Any

from trajectile.model import jsontext
from trajectile.model.errors import Retryable

DONE = b"[DONE]"


def is_stream(body: bytes) -> bool:
    """Tell whether `body` is an event stream."""
    return body.lstrip()[:6].startswith((b"data:", b"event:", b": "))


def merge(body: bytes) -> dict[str, Any]:
    """Put the chunks of a stream together to the answer that should have come; raises ValueError for bad JSON."""
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: dict[Any, dict[str, Any]] = {}
    merged: dict[str, Any] = {"choices": [{"message": message}]}
    ended = False
    for data in _events(body):
        ended = ended or data == DONE
        chunk = {} if data == DONE else jsontext.loads(data)
        if not isinstance(chunk, dict):
            raise ValueError("an event that is no object")
        merged |= {name: chunk[name] for name in ("error", "usage") if chunk.get(name)}
        for choice in _choices(chunk):
            _add_delta(message, calls, choice.get("delta") or choice.get("message") or {})
            if reason := choice.get("finish_reason"):
                merged["choices"][0]["finish_reason"] = reason
                ended = True
    if not ended and "error" not in merged:
        raise Retryable("bad_answer", "the answer is an event stream that was cut off")
    return _with_calls(merged, message, calls)


def _with_calls(merged: dict[str, Any], message: dict[str, Any], calls: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    if calls:
        message["tool_calls"] = list(calls.values())
    return merged


def _events(body: bytes) -> list[bytes]:
    lines = (line.strip() for line in body.split(b"\n"))
    return [line[5:].strip() for line in lines if line.startswith(b"data:") and line[5:].strip()]


def _choices(chunk: dict[str, Any]) -> list[dict[str, Any]]:
    choices = chunk.get("choices")
    return [c for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []


def _add_delta(message: dict[str, Any], calls: dict[Any, dict[str, Any]], delta: Any) -> None:
    if not isinstance(delta, dict):
        return
    for name in ("content", "reasoning", "reasoning_content"):
        if isinstance(delta.get(name), str):
            message[name] = message.get(name, "") + delta[name]
    for part in delta.get("tool_calls") or []:
        if isinstance(part, dict):
            _add_call(calls.setdefault(part.get("index", len(calls)), {}), part)


def _add_call(call: dict[str, Any], part: dict[str, Any]) -> None:
    piece = part.get("function") or {}
    function = call.setdefault("function", {"name": "", "arguments": ""})
    if part.get("id"):
        call["id"] = part["id"]
    for name in ("name", "arguments"):
        if isinstance(piece, dict) and isinstance(piece.get(name), str):
            function[name] += piece[name]
