"""All toolsets, and the one way to call a tool."""

from collections.abc import Iterable
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from trajectile.tools import files, search, terminal
from trajectile.tools.tool import Arguments, Tool, ToolContext, error

# The message quotes the argument, which may be a whole file.
MESSAGE_CHARACTERS = 300
TOOLSETS: dict[str, list[Tool]] = {
    "terminal": [terminal.TERMINAL, terminal.PROCESS],
    "file": [files.READ_FILE, files.WRITE_FILE, files.PATCH, search.SEARCH_FILES],
}


def tools_of(toolsets: Iterable[str]) -> list[Tool]:
    """The tools of these toolsets, in their order; KeyError for a toolset there is not."""
    return [tool for toolset in toolsets for tool in TOOLSETS[toolset]]


def schemas(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Tools as a chat-completions request takes them."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]


async def call(tool: Tool, context: ToolContext, arguments: Arguments) -> str:
    """The tool's result; wrong arguments, OSError and ValueError become an error result, other exceptions pass."""
    given = without_nulls(tool, arguments)
    if problem := arguments_problem(tool, given):
        return error(problem)
    try:
        return await tool.handler(context, given)
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
    found: ValidationError | None = best_match(Draft202012Validator(tool.parameters).iter_errors(arguments))
    if found is None:
        return ""
    where = "".join(f"{part}: " for part in found.absolute_path)
    expected = ", ".join(
        f"{name} ({schema.get('type', 'any')}{', required' if name in tool.parameters['required'] else ''})"
        for name, schema in tool.parameters["properties"].items()
    )
    wrong = found.message[:MESSAGE_CHARACTERS]
    return f"Wrong arguments for {tool.name}: {where}{wrong}. It takes: {expected or 'nothing'}."
