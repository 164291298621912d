"""All toolsets. A tool is a module of a package here that defines TOOL; adding one is adding a file."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from trajectile import tools as built_in
from trajectile.configuration.settings import Settings
from trajectile.tools.tool import Tool

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


def load_toolsets(settings: Settings) -> Toolsets:
    """Every toolset that a run with these settings knows, ready or not."""
    return TOOLSETS


def problems(toolsets: Toolsets, settings: Settings) -> dict[str, str]:
    """What toolsets lack on this machine, by name; those that lack nothing are left out."""
    lacks = {name: [lack for tool in tools if (lack := tool.requirement(settings))] for name, tools in toolsets.items()}
    return {name: lack[0] for name, lack in lacks.items() if lack}


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
