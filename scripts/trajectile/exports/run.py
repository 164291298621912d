"""What exports need of run.json: what the run is called, and the schemas of the tools that a row was offered."""

from typing import Any, NamedTuple

import msgspec

from trajectile.errors import UserError
from trajectile.run_folder.paths import RunFolder

Schema = dict[str, Any]


class Tools(NamedTuple):
    """The tools of a row, as chat-completions requests list them, and the same as JSON text.

    `written` is that text as a JSON string: schemas are long and few, so they are encoded once.
    """

    schemas: list[Schema]
    text: str
    written: msgspec.Raw


class Run(msgspec.Struct):
    """run.json, as far as exports read it; `toolsets` maps toolsets to the names of their tools."""

    run_name: str
    tool_schemas: list[Schema] = []
    settings: dict[str, Any] = {}
    versions: dict[str, str] = {}
    toolsets: dict[str, list[str]] = {}

    def setting(self, name: str) -> str:
        return str(self.settings.get(name, ""))


def read_run(folder: RunFolder) -> Run:
    """Read run.json; UserError where it is missing or is not one."""
    try:
        return msgspec.json.decode(folder.run_json.read_bytes(), type=Run)
    except FileNotFoundError:
        raise UserError(f"{folder.run_json} is missing: {folder.root} is not the folder of a run") from None
    except msgspec.DecodeError as error:
        raise UserError(f"{folder.run_json} cannot be read: {error}") from None


def tools_of(schemas: list[Schema]) -> Tools:
    text = msgspec.json.encode(schemas).decode()
    return Tools(schemas, text, msgspec.Raw(msgspec.json.encode(text)))


class ToolCatalogue:
    """Answers which tools the toolsets of a row hold, in the order of run.json."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._known: dict[tuple[str, ...], Tools] = {}

    def of(self, toolsets: list[str]) -> Tools:
        key = tuple(toolsets)
        if key not in self._known:
            names = {name for toolset in toolsets for name in self._run.toolsets.get(toolset, ())}
            schemas = [schema for schema in self._run.tool_schemas if schema["function"]["name"] in names]
            self._known[key] = tools_of(schemas)
        return self._known[key]
