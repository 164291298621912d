"""All toolsets. A tool is a module of a package here that defines TOOL; adding one is adding a file."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from trajectile import tools as built_in
from trajectile.configuration.settings import Settings
from trajectile.errors import UserError
from trajectile.run_folder.identity import ServerTool
from trajectile.tools.distributions import KNOWN_TOOLSETS
from trajectile.tools.mcp.servers import read_servers
from trajectile.tools.mcp.toolset import server_tools
from trajectile.tools.own_tools import load_own_tools
from trajectile.tools.tool import Tool

ServerTools = Mapping[str, Sequence[ServerTool]]
Toolsets = Mapping[str, list[Tool]]


def _built_in() -> dict[str, list[Tool]]:
    found: dict[str, list[Tool]] = {}
    for module in walk_packages(built_in.__path__, f"{built_in.__name__}."):
        if module.name.count(".") == 3:
            tool = getattr(import_module(module.name), "TOOL", None)
            if tool is not None:
                found.setdefault(tool.toolset, []).append(tool)
    return found


TOOLSETS: Toolsets = _built_in()


def load_toolsets(settings: Settings, mcp_tools: ServerTools | None = None) -> Toolsets:
    """Every toolset that a run with these settings knows, ready or not; UserError for two tools of one name.

    A server of `mcp_servers` has the tools that `mcp_tools` holds for it, none before it was asked.
    """
    toolsets = dict(TOOLSETS)
    names = {tool.name for tool in tools_of(TOOLSETS, TOOLSETS)}
    for tool in load_own_tools(settings.tool_sources, {*KNOWN_TOOLSETS, *TOOLSETS}, names):
        toolsets[tool.toolset] = [*toolsets.get(tool.toolset, []), tool]
    for server in read_servers(settings.mcp_servers).values():
        toolsets[server.toolset] = server_tools(server.name, (mcp_tools or {}).get(server.name, ()))
    _refuse_equal_names(toolsets)
    return toolsets


def _refuse_equal_names(toolsets: Toolsets) -> None:
    first: dict[str, str] = {}
    for toolset, tools in toolsets.items():
        for tool in tools:
            if tool.name in first:
                raise UserError(f"toolsets {first[tool.name]} and {toolset} both have a tool {tool.name!r}")
            first[tool.name] = toolset


def problems(toolsets: Toolsets, settings: Settings) -> dict[str, str]:
    """What toolsets lack on this machine, by name; those that lack nothing are left out."""
    lacks = {name: [lack for tool in tools if (lack := tool.requirement(settings))] for name, tools in toolsets.items()}
    lacks |= {server.toolset: [server.lacks()] for server in read_servers(settings.mcp_servers).values()}
    return {name: lack[0] for name, lack in lacks.items() if any(lack)}


def tools_of(names: Iterable[str], toolsets: Toolsets) -> list[Tool]:
    """The tools of these toolsets, in their order; KeyError for a toolset there is not."""
    return [tool for name in names for tool in toolsets[name]]


def schemas(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Tools as a chat-completions request takes them."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]
