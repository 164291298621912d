"""What a server offers, as the chat API takes it: names with a prefix, schemas checked."""

import hashlib
import re
from typing import Any

from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from trajectile.run_folder.identity import ServerTool
from trajectile.tools.own_tools import schema_problem

MOST_CHARACTERS = 64
DIGEST_CHARACTERS = 8
MOST_TOOLS = 500


def offered_name(server: str, tool: str) -> str:
    """The name that the model calls a tool by; one that is too long ends in a digest."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"mcp_{server}_{tool}")
    if len(name) <= MOST_CHARACTERS:
        return name
    digest = hashlib.sha256(f"{server}\n{tool}".encode()).hexdigest()[:DIGEST_CHARACTERS]
    return f"{name[: MOST_CHARACTERS - DIGEST_CHARACTERS - 1]}_{digest}"


def offered_tool(server: str, name: str, description: str, schema: dict[str, Any]) -> ServerTool:
    """A tool of a server, fit for a run; ValueError where its schema is no JSON schema."""
    shaped = {"type": "object", "properties": {}, "required": [], **schema}
    shaped.pop("$schema", None)
    if problem := schema_problem(name, shaped) or _lost_reference(name, shaped):
        raise ValueError(problem)
    return ServerTool(offered_name(server, name), name, description, shaped)


def _lost_reference(name: str, schema: dict[str, Any]) -> str:
    resolver = Registry().resolver_with_root(Resource.from_contents(schema, default_specification=DRAFT202012))
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except (Unresolvable, ValueError) as error:
            return f"tool {name!r}: the schema of its arguments refers to {reference!r}: {type(error).__name__}"
    return ""


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [found for each in node for found in _references(each)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
    return own + [found for each in node.values() for found in _references(each)]
