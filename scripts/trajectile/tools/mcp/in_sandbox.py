"""A server that runs as a command in a sandbox."""

import asyncio
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from trajectile.sandbox.base import Sandbox
from trajectile.tools.mcp.lines import MESSAGES_WAITING, SAID_BYTES, Lines, Said, to_line
from trajectile.tools.mcp.servers import Server

GRACE_S = 2.0


@asynccontextmanager
async def in_sandbox(sandbox: Sandbox, server: Server, said: Said) -> AsyncIterator[Any]:
    """Streams for the SDK's client; with them ends the command, and at the latest with the sandbox all it started."""
    import anyio

    incoming, read = anyio.create_memory_object_stream[Any](MESSAGES_WAITING)
    write, outgoing = anyio.create_memory_object_stream[Any](0)
    stdin: asyncio.Queue[bytes | None] = asyncio.Queue()
    running = asyncio.ensure_future(_run(sandbox, server, Lines(incoming, said), stdin, said))
    running.add_done_callback(lambda _: incoming.close())
    sending = asyncio.ensure_future(_send(stdin, outgoing))
    try:
        yield read, write
    finally:
        sending.cancel()
        stdin.put_nowait(None)
        await asyncio.shield(asyncio.ensure_future(_end(running)))
        for stream in (incoming, read, write, outgoing):
            stream.close()


async def _run(
    sandbox: Sandbox, server: Server, lines: Lines, stdin: "asyncio.Queue[bytes | None]", said: Said
) -> None:
    log = f"/tmp/.mcp-{server.name}"
    result = await sandbox.exec(_script(server, log), timeout_s=None, output=lines, stdin=stdin, persist=False)
    said.feed(result.output)
    with suppress(OSError):
        said.feed(await sandbox.read_file(f"{log}.log"))


def _script(server: Server, log: str) -> str:
    """The protocol has standard output for itself: of what goes to the other one a file keeps the beginning."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in server.env.items()]
    command = " ".join(["exec env", *variables, *map(shlex.quote, (server.command, *server.args))])
    keep = f"{{ head -c {SAID_BYTES} >{log}.log; cat; }} <{log}.$$ >/dev/null 2>&1 &"
    return f"if mkfifo {log}.$$ 2>/dev/null; then {keep} {command} 2>{log}.$$; else {command} 2>/dev/null; fi"


async def _send(stdin: "asyncio.Queue[bytes | None]", outgoing: Any) -> None:
    async for message in outgoing:
        stdin.put_nowait(to_line(message))


async def _end(running: "asyncio.Task[None]") -> None:
    """A server has its input's end to go by, then it is killed with all that it started."""
    await asyncio.wait([running], timeout=GRACE_S)
    running.cancel()
    await asyncio.wait([running])
    if not running.cancelled():
        running.exception()  # seen: the connection's end has told
