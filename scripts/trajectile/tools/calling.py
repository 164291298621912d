"""The one way to call a tool: arguments checked, failures told to the model."""

import re
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from trajectile.tools.bounding import bounded
from trajectile.tools.tool import Arguments, Tool, ToolContext, error

# The message quotes the argument, which may be a whole file.
MESSAGE_CHARACTERS = 300


async def call(tool: Tool, context: ToolContext, arguments: Arguments) -> str:
    """The tool's result, bounded; wrong arguments, OSError and ValueError become an error, other exceptions pass."""
    given = without_nulls(tool, arguments)
    if problem := arguments_problem(tool, given):
        return error(problem)
    try:
        return bounded(await tool.handler(context, given), context.settings.output_limit)
    except OSError as failure:
        where = f": {failure.filename}" if failure.filename else ""
        return error(f"{failure.strerror or failure}{where}")
    except ValueError as failure:
        return error(str(failure))


def without_nulls(tool: Tool, arguments: Arguments) -> Arguments:
    """Many models write null for an optional argument that they leave out."""
    required = tool.parameters.get("required", [])
    return {name: value for name, value in arguments.items() if value is not None or name in required}


def arguments_problem(tool: Tool, arguments: Arguments) -> str:
    """What is wrong with `arguments` and what is expected instead, in a sentence; empty where nothing is."""
    try:
        found: ValidationError | None = best_match(Draft202012Validator(tool.parameters).iter_errors(arguments))
    except (re.error, RecursionError):
        return ""  # the schema of an MCP server may hold patterns of another language: the server checks for itself
    if found is None:
        return ""
    where = "".join(f"{part}: " for part in found.absolute_path)
    required = tool.parameters.get("required", [])
    expected = ", ".join(
        f"{name} ({_type(schema)}{', required' if name in required else ''})"
        for name, schema in tool.parameters.get("properties", {}).items()
    )
    wrong = found.message[:MESSAGE_CHARACTERS]
    return f"Wrong arguments for {tool.name}: {where}{wrong}. It takes: {expected or 'nothing'}."


def _type(schema: Any) -> str:
    kinds = schema.get("type", "any") if isinstance(schema, dict) else "any"
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)
