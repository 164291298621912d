"""A user's own tools: Python files, and entry points in the group trajectile.tools."""

import re
import sys
import traceback
from collections.abc import Collection, Iterable
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, SchemaError

from trajectile.errors import UserError
from trajectile.tools.tool import Tool

GROUP = "trajectile.tools"
TOOLSET_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
EXPECTED = "TOOL = Tool(…) or TOOLS = [Tool(…), …]"


def load_own_tools(sources: Iterable[str], taken_toolsets: Collection[str], taken_tools: Collection[str]) -> list[Tool]:
    """The tools of `sources`, files ending in .py or names of entry points; a UserError names source and line."""
    found: dict[str, Tool] = {}
    for source in sources:
        for tool in _tools_in(_from_file(source) if source.endswith(".py") else _from_entry_point(source), source):
            if problem := _problem(tool, taken_toolsets, {*taken_tools, *found}):
                raise UserError(f"tool_files: {source}: {problem}")
            found[tool.name] = tool
    return list(found.values())


def _from_file(source: str) -> ModuleType:
    """The file as a module; no bytecode is written beside it."""
    path = Path(source)
    module = ModuleType(f"trajectile_own_tools_{re.sub(r'[^A-Za-z0-9_]', '_', source)}")
    module.__file__ = str(path.absolute())
    sys.modules[module.__name__] = module  # dataclasses look their module up there
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except OSError as error:
        if error.filename != source:
            raise _told(source, error) from error
        raise UserError(f"tool_files: {source} cannot be read: {error.strerror}") from None
    except Exception as error:
        raise _told(source, error) from error
    return module


def _told(source: str, error: Exception) -> UserError:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(Path(source))]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    where = f", line {line}" if line else ""
    message = error.msg if isinstance(error, SyntaxError) else error
    return UserError(f"tool_files: {source}{where}: {type(error).__name__}: {message}")


def _from_entry_point(name: str) -> Any:
    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in known:
        names = ", ".join(sorted(known)) or "none"
        raise UserError(
            f"tool_files: {name} is no file ending in .py and no entry point in {GROUP} (there are: {names})"
        )
    try:
        return known[name].load()
    except Exception as error:
        raise UserError(f"tool_files: {name}: {type(error).__name__}: {error}") from error


def _tools_in(given: Any, source: str) -> list[Tool]:
    """The tools of a module that defines TOOL or TOOLS, or what an entry point names itself."""
    if isinstance(given, ModuleType):
        given = getattr(given, "TOOLS", getattr(given, "TOOL", None))
    tools = list(given) if isinstance(given, list | tuple) else [given]
    if not tools or not all(isinstance(tool, Tool) for tool in tools):
        raise UserError(f"tool_files: {source} defines no tools; expected {EXPECTED}")
    return tools


def _problem(tool: Tool, taken_toolsets: Collection[str], taken_tools: Collection[str]) -> str:
    """Why a tool cannot be taken, "" where it can."""
    if not isinstance(tool.toolset, str) or not TOOLSET_NAME.fullmatch(tool.toolset):
        return f"toolset {tool.toolset!r}: a name is of a to z, digits and _, and begins with a letter"
    if tool.toolset in taken_toolsets:
        return f"toolset {tool.toolset!r} is one of Trajectile's own; give yours another name"
    if not isinstance(tool.name, str) or not TOOL_NAME.fullmatch(tool.name):
        return f"tool {tool.name!r}: a name is of up to 64 letters, digits, _ and -"
    if tool.name in taken_tools:
        return f"there is a tool {tool.name!r} already; give yours another name"
    return schema_problem(tool.name, tool.parameters)


def schema_problem(name: str, schema: Any) -> str:
    """What is wrong with the schema of a tool's arguments, "" where nothing is."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return (
            f"tool {name!r}: the schema of its arguments must be of type object; see trajectile.tools.tool.parameters"
        )
    try:
        # Patterns may be of another language than Python; see calling.arguments_problem.
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        where = "/".join(map(str, error.absolute_path)) or "its root"
        return f"tool {name!r}: the schema of its arguments is wrong at {where}: {error.message[:300]}"
    return ""
