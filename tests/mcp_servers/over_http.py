"""An MCP server of the SDK over streamable HTTP, at the port of its argument."""

import asyncio
import os
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

app = MCPServer("over_http")


@app.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool()
def authorization(context: Context) -> str:
    """Say what the request's header says."""
    headers = context.request_context.request.headers
    return str(headers.get("authorization"))


@app.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("no")


@app.tool()
async def slow() -> str:
    """Take long."""
    await asyncio.sleep(60)
    return "late"


@app.tool()
def die() -> str:
    """End the server."""
    os._exit(3)


app.run("streamable-http", port=int(sys.argv[1]))
