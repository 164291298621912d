"""The ways to a server: a process of this machine, a command in a sandbox, or HTTP.

The SDK takes long to import, so that is done where a server is first reached.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from trajectile.sandbox.base import Sandbox
from trajectile.tools.mcp.in_sandbox import in_sandbox
from trajectile.tools.mcp.lines import Said
from trajectile.tools.mcp.on_host import on_host
from trajectile.tools.mcp.servers import Server, filled_in

if TYPE_CHECKING:
    from mcp.client import Transport

CONNECT_S, SILENCE_S = 30.0, 600.0
# What the SDK logs can hold what a server said, and the environment's secrets with it.
LOGGERS = ("mcp", "client", "httpx2")


def transport(server: Server, sandbox: Sandbox | None, said: Said) -> "Transport":
    """How the SDK's client reaches a server; `said` takes what it prints beside the protocol."""
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if server.url:
        return _over_http(server)
    return in_sandbox(sandbox, server, said) if sandbox else on_host(server, said)


@asynccontextmanager
async def _over_http(server: Server) -> AsyncIterator[Any]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    headers = {name: filled_in(value) for name, value in server.headers.items()}
    timeout = httpx2.Timeout(CONNECT_S, read=SILENCE_S)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout) as http,
        streamable_http_client(filled_in(server.url), http_client=http) as streams,
    ):
        yield streams
