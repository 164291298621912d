"""Chat-completions answers as a production server writes them."""

import time
from typing import Any

import orjson

from .script import Reply, short_digest

STYLES = (
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "think",
    "scratchpad",
    "unopened",
    "none",
)
CHARS_PER_TOKEN = 4


def completion(reply: Reply, prompt: str, turn: int, request: dict[str, Any], size: int, style: str) -> bytes:
    """Return the body of an answer; ids depend on prompt and turn only. `size` is that of the request (bytes)."""
    name = f"{short_digest(prompt)}-{turn}"
    message = assistant_message(reply, name, style)
    finish = reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")
    return orjson.dumps(
        {
            "id": f"chatcmpl-{name}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": request.get("model", ""),
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
            "usage": _usage(reply, size) | reply.usage,
        }
    )


def assistant_message(reply: Reply, name: str, style: str) -> dict[str, Any]:
    """Return the message with its reasoning in one of STYLES."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool_calls:
        message["tool_calls"] = [_call(call, f"{name}-{i}") for i, call in enumerate(reply.tool_calls)]
    if reply.reasoning:
        message |= _reasoning(reply, style)
    return message


def _reasoning(reply: Reply, style: str) -> dict[str, Any]:
    thought = reply.reasoning
    styles: dict[str, dict[str, Any]] = {
        "reasoning": {"reasoning": thought},
        "reasoning_content": {"reasoning_content": thought},
        "reasoning_details": {"reasoning_details": [{"type": "reasoning.text", "text": thought, "index": 0}]},
        "think": {"content": f"<think>\n{thought}\n</think>\n\n{reply.text}"},
        "scratchpad": {"content": f"<REASONING_SCRATCHPAD>{thought}</REASONING_SCRATCHPAD>\n{reply.text}"},
        "unopened": {"content": f"{thought}\n</think>\n\n{reply.text}"},
        "none": {},
    }
    return styles[style]


def _call(call: dict[str, Any], name: str) -> dict[str, Any]:
    arguments = call.get("arguments", {})
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return {
        "id": call.get("id", f"call_{name}"),
        "type": "function",
        "function": {"name": call["name"], "arguments": text},
    }


def _usage(reply: Reply, size: int) -> dict[str, Any]:
    prompt = size // CHARS_PER_TOKEN + 1
    thought = len(reply.reasoning) // CHARS_PER_TOKEN
    written = len(reply.text) // CHARS_PER_TOKEN + thought + 8 * len(reply.tool_calls) + 1
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "completion_tokens_details": {"reasoning_tokens": thought},
    }


def error_body(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def models_body(names: list[str]) -> dict[str, Any]:
    data = [{"id": name, "object": "model", "created": 0, "owned_by": "script"} for name in names]
    return {"object": "list", "data": data}
