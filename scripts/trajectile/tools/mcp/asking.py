"""Asks servers which tools they offer."""

from typing import TYPE_CHECKING

from trajectile.run_folder.identity import ServerTool
from trajectile.sandbox.base import Sandbox
from trajectile.tools.mcp.connection import Broken, Connection, Unreachable
from trajectile.tools.mcp.offered import MOST_TOOLS, offered_tool
from trajectile.tools.mcp.servers import Server

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool


async def ask_for_tools(server: Server, sandbox: Sandbox | None, timeout_s: float) -> list[ServerTool] | str:
    """The tools of a server, or why they cannot be offered."""
    connection = Connection(server, sandbox, timeout_s)
    try:
        listed = await connection.ask(_all_tools)
        found = [offered_tool(server.name, each.name, each.description or "", each.input_schema) for each in listed]
        _refuse_equal_names(found)
    except (Unreachable, Broken, ValueError) as problem:
        return f"MCP server {server.name}: {problem}"
    except TimeoutError:
        return f"MCP server {server.name}: no list of tools after {timeout_s:g} s"
    finally:
        await connection.close()
    return found if found else f"MCP server {server.name}: it offers no tools"


def _refuse_equal_names(tools: list[ServerTool]) -> None:
    first: dict[str, str] = {}
    for tool in tools:
        other = first.setdefault(tool.name, tool.server_name)
        if other != tool.server_name:
            raise ValueError(f"its tools {other!r} and {tool.server_name!r} would both be called {tool.name}")


async def _all_tools(client: "Client") -> "list[Tool]":
    page = await client.list_tools()
    found = list(page.tools)
    while page.next_cursor and len(found) < MOST_TOOLS:
        page = await client.list_tools(cursor=page.next_cursor)
        found += page.tools
    return found
