"""The JSON schema a reply must follow: one alternative per tool call that is allowed, and an answer."""

from typing import Any, NamedTuple

Json = dict[str, Any]

THOUGHT_CHARS = (12, 120)
MAX_TEXT_CHARS = 1500
MIN_TEXT_CHARS = 60
CHARS_PER_TOKEN = 1  # of the worst texts that small models write; English has about four
LIST_ITEMS = 20
MAX_DEPTH = 6
FRAME_TOKENS = 80  # braces, names and the thought, which the reply spends before its long text
UNSAFE_KEYWORDS = frozenset(
    {"pattern", "format", "default", "title", "description", "examples", "$defs", "definitions"}
)


class Allowed(NamedTuple):
    """What a reply may be: calls to these tools, an answer, and whether a thought comes first."""

    tools: list[Json]
    answer: bool = True
    thought: bool = True
    answer_schema: Json | None = None


def reply_schema(allowed: Allowed, max_tokens: int) -> Json:
    """The schema of all allowed replies; free text is capped so that the JSON closes within `max_tokens`."""
    room = CHARS_PER_TOKEN * (max_tokens - FRAME_TOKENS)
    choices = [_call_schema(tool, allowed.thought, room) for tool in allowed.tools]
    if allowed.answer:
        text = {"type": "string", "minLength": 1, "maxLength": _cap(room)}
        answer = allowed.answer_schema or text
        choices.append(_reply({"answer": answer}, allowed.thought))
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _cap(room: int, texts: int = 1) -> int:
    return min(MAX_TEXT_CHARS, max(MIN_TEXT_CHARS, room // max(texts, 1)))


def _call_schema(tool: Json, thought: bool, room: int) -> Json:
    parameters = {"type": "object", "properties": {}, **(tool.get("parameters") or {})}
    arguments = bounded(parameters, _cap(room, len(parameters["properties"])))
    arguments.setdefault("additionalProperties", False)
    return _reply({"tool": {"const": tool["name"]}, "arguments": arguments}, thought)


def _reply(fields: Json, thought: bool) -> Json:
    shortest, longest = THOUGHT_CHARS
    first = {"thought": {"type": "string", "minLength": shortest, "maxLength": longest}} if thought else {}
    properties = {**first, **fields}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def bounded(schema: Json, cap: int) -> Json:
    """A tool's parameter schema with references put in place, lengths bounded, and only what the engine knows."""
    definitions = {**schema.get("definitions", {}), **schema.get("$defs", {})}
    result = _bounded(schema, cap, definitions, MAX_DEPTH)
    assert isinstance(result, dict)
    return result


def _bounded(node: Any, cap: int, definitions: Json, depth: int) -> Any:
    if not isinstance(node, dict):
        return node
    if depth == 0:
        return {"type": "string", "maxLength": cap}
    if "$ref" in node:
        target = definitions.get(str(node["$ref"]).rpartition("/")[2], {})
        return _bounded(target, cap, definitions, depth - 1)
    kept = {key: _child(key, value, cap, definitions, depth) for key, value in node.items()}
    kept = {key: value for key, value in kept.items() if key not in UNSAFE_KEYWORDS}
    return _limited(kept, cap)


def _child(key: str, value: Any, cap: int, definitions: Json, depth: int) -> Any:
    if key == "properties" and isinstance(value, dict):
        return {name: _bounded(part, cap, definitions, depth - 1) for name, part in value.items()}
    if key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
        return [_bounded(part, cap, definitions, depth - 1) for part in value]
    if key in ("items", "additionalProperties"):
        return _bounded(value, cap, definitions, depth - 1)
    return value


def _limited(node: Json, cap: int) -> Json:
    kinds = node.get("type")
    if kinds == "string" and "enum" not in node and "const" not in node:
        node["maxLength"] = max(node.get("minLength", 0), min(node.get("maxLength", cap), cap))
    if kinds == "array":
        node["maxItems"] = max(node.get("minItems", 0), min(node.get("maxItems", LIST_ITEMS), LIST_ITEMS))
    if isinstance(kinds, list):
        rest = {key: value for key, value in node.items() if key != "type"}
        return {"anyOf": [_limited({**rest, "type": kind}, cap) for kind in kinds]}
    return node
