"""A chat-completions request turned into one for the engine: tools and choices become a reply schema."""

import json
from typing import Any

from trajectile.model.local.rendering import BadRequest, calls_of, render_messages
from trajectile.model.local.schemas import MAX_TEXT_CHARS, Allowed, Json, bounded, reply_schema

DEFAULT_MAX_TOKENS = 384
SAMPLING = ("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty")


def engine_request(body: Json) -> Json:
    """The engine's request for a caller's one; BadRequest when it asks for what this server cannot do."""
    messages = _messages(body)
    tools = [_function(tool) for tool in body.get("tools") or []]
    allowed = allow(body, tools, messages)
    max_tokens = _max_tokens(body)
    schema = reply_schema(allowed, max_tokens)
    return {
        "messages": render_messages(messages, tools, allowed),
        "max_tokens": max_tokens,
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}},
        **{key: body[key] for key in SAMPLING if body.get(key) is not None},
    }


def _messages(body: Json) -> list[Json]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages must be a list with at least one message")
    if not all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in messages):
        raise BadRequest("each message must be an object with a role")
    if body.get("stream"):
        raise BadRequest("this server does not stream: leave `stream` out")
    if body.get("n") not in (None, 1):
        raise BadRequest("this server gives one choice a request: leave `n` out")
    return messages


def _function(tool: Any) -> Json:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise BadRequest("each tool must be {'type': 'function', 'function': {'name': ...}}")
    return function


def _max_tokens(body: Json) -> int:
    asked = body.get("max_completion_tokens") or body.get("max_tokens") or DEFAULT_MAX_TOKENS
    if not isinstance(asked, int) or asked < 1:
        raise BadRequest("max_tokens must be a whole number above 0")
    return asked


def allow(body: Json, tools: list[Json], messages: list[Json]) -> Allowed:
    """What the reply may be, from tool_choice, response_format and the calls made so far."""
    choice = body.get("tool_choice") or "auto"
    thought, answer_schema = _wants_thought(body), _answer_schema(body)
    if choice == "none" or not tools:
        return Allowed([], True, thought, answer_schema)
    if choice == "required":
        return Allowed(tools, False, thought)
    if isinstance(choice, dict):
        return Allowed([_named(choice, tools)], False, thought)
    if choice != "auto":
        raise BadRequest(f"unknown tool_choice {choice!r}: auto, none, required, or a function by name")
    return Allowed([] if repeats(messages) else tools, True, thought, answer_schema)


def _named(choice: Json, tools: list[Json]) -> Json:
    name = (choice.get("function") or {}).get("name")
    for tool in tools:
        if tool["name"] == name:
            return tool
    raise BadRequest(f"tool_choice names {name!r}, which is not among the tools")


def _wants_thought(body: Json) -> bool:
    reasoning = body.get("reasoning") or {}
    efforts = (body.get("reasoning_effort"), reasoning.get("effort"))
    return reasoning.get("enabled") is not False and "none" not in efforts


def _answer_schema(body: Json) -> Json | None:
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_object":
        return {"type": "object"}
    schema = (wanted.get("json_schema") or {}).get("schema")
    return bounded(schema, MAX_TEXT_CHARS) if isinstance(schema, dict) else None


def repeats(messages: list[Json]) -> bool:
    """Whether the last two calls since the last user message are the same: small models would go on for ever."""
    calls: list[tuple[str, str]] = []
    for message in messages:
        if message["role"] == "user":
            calls.clear()
        calls += [_identity(call["function"]) for call in calls_of(message)]
    return len(calls) > 1 and calls[-1] == calls[-2]


def _identity(function: Json) -> tuple[str, str]:
    try:
        return function["name"], json.dumps(json.loads(function["arguments"]), sort_keys=True)
    except ValueError:
        return function["name"], function["arguments"]
