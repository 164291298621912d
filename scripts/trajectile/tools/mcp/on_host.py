"""A server that runs as a process of this machine."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from trajectile.environment import passed
from trajectile.sandbox.base import OutputBuffer
from trajectile.tools.mcp.lines import MESSAGES_WAITING, Lines, Said, to_line
from trajectile.tools.mcp.servers import INHERITED, Server, filled_in

READ_BYTES = 1 << 16
LOOK_S, GRACE_S = 0.05, 2.0


@asynccontextmanager
async def on_host(server: Server, said: Said) -> AsyncIterator[Any]:
    """Streams for the SDK's client; with them ends the process, and the group of processes that it leads."""
    import anyio

    process = await _start(server)
    incoming, read = anyio.create_memory_object_stream[Any](MESSAGES_WAITING)
    write, outgoing = anyio.create_memory_object_stream[Any](0)
    tasks = [
        asyncio.ensure_future(each)
        for each in (
            _pump(process.stdout, Lines(incoming, said)),
            _pump(process.stderr, said),
            _send(process, outgoing),
            _watch(process, incoming),
        )
    ]
    try:
        yield read, write
    finally:
        await asyncio.shield(asyncio.ensure_future(_end(process)))
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for stream in (incoming, read, write, outgoing):
            stream.close()


async def _start(server: Server) -> asyncio.subprocess.Process:
    env = passed(INHERITED) | {name: filled_in(value) for name, value in server.env.items()}
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        server.command, *server.args, stdin=pipe, stdout=pipe, stderr=pipe, env=env, start_new_session=True
    )


async def _pump(stream: asyncio.StreamReader | None, output: OutputBuffer) -> None:
    while stream and (chunk := await stream.read(READ_BYTES)):
        output.feed(chunk)


async def _send(process: asyncio.subprocess.Process, outgoing: Any) -> None:
    with suppress(ConnectionError):
        async for message in outgoing:
            if process.stdin:
                process.stdin.write(to_line(message))
                await process.stdin.drain()


async def _watch(process: asyncio.subprocess.Process, incoming: Any) -> None:
    """What it started may hold its output open, so that its end alone tells of its death."""
    await _gone(process)
    await asyncio.sleep(LOOK_S)  # its last words are still in the pipe
    incoming.close()


async def _gone(process: asyncio.subprocess.Process) -> None:
    """Not Process.wait, which also waits for the pipes' end."""
    while process.returncode is None:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_S)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.stdin:
        process.stdin.close()
    for end in (signal.SIGTERM, signal.SIGKILL):
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await _gone(process)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, end)
    await _gone(process)
    transport = getattr(process, "_transport", None)
    if transport:  # else it stays open as long as a process of another group holds the pipes
        transport.close()
