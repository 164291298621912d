"""The tools of servers, as the registry knows them."""

from collections.abc import Iterable

from trajectile.configuration.settings import Settings
from trajectile.errors import PromptError
from trajectile.run_folder.identity import ServerTool
from trajectile.sandbox.base import Sandbox
from trajectile.tools.distributions import MCP_PREFIX
from trajectile.tools.mcp.connection import Broken, Connection, Unreachable
from trajectile.tools.mcp.results import to_result
from trajectile.tools.mcp.servers import SANDBOX, read_servers
from trajectile.tools.tool import Arguments, Handler, Tool, ToolContext, error


def server_tools(server: str, offered: Iterable[ServerTool]) -> list[Tool]:
    """A server's tools; they reach it when they are first called."""
    return [
        Tool(each.name, f"{MCP_PREFIX}{server}", each.description, each.parameters, _handler(server, each.server_name))
        for each in offered
    ]


def _handler(server: str, tool: str) -> Handler:
    async def handler(context: ToolContext, arguments: Arguments) -> str:
        return await call(context, server, tool, arguments)

    return handler


class Connections:
    """Connections to the servers of a run, one for each."""

    def __init__(self, settings: Settings) -> None:
        self.servers = read_servers(settings.mcp_servers)
        self._timeout_s = settings.mcp_timeout
        self._open: dict[str, Connection] = {}

    def to(self, name: str, sandbox: Sandbox | None) -> Connection:
        if name not in self._open:
            self._open[name] = Connection(self.servers[name], sandbox, self._timeout_s)
        return self._open[name]

    async def close(self) -> None:
        for connection in self._open.values():
            await connection.close()


async def call(context: ToolContext, name: str, tool: str, arguments: Arguments) -> str:
    """Result: what the server answers, as text. PromptError where a server outside the sandbox cannot be reached."""
    shared = context.shared.get(Connections, context.settings)
    if name not in shared.servers:
        raise PromptError("mcp_unavailable", f"mcp_servers names no server {name!r}")
    server = shared.servers[name]
    inside = server.where == SANDBOX
    kept = context.own.get(Connections, context.settings) if inside else shared
    connection = kept.to(name, context.sandbox if inside else None)
    try:
        answer = await connection.ask(lambda client: client.call_tool(tool, arguments))
    except Unreachable as problem:
        if inside:
            return error(f"the MCP server {name} does not start: {problem}")
        raise PromptError("mcp_unavailable", f"MCP server {name}: {problem}") from problem
    except Broken as problem:
        return error(f"the connection to the MCP server {name} ended: {problem}; the next call makes a new one")
    except TimeoutError:
        return error(f"the MCP server {name} gave no answer for {context.settings.mcp_timeout:g} s")
    return to_result(answer, context.settings.output_limit, server.secrets)
