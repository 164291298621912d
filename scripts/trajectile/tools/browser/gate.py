"""The one way out of a browser: a SOCKS5 proxy in this process, which connects to addresses that were checked.

Chromium hands every name to it unresolved, of pages, frames, scripts' requests and WebSockets alike, so that a name
that resolves to something else the next time gains nothing.
"""

import asyncio
import socket
from ipaddress import ip_address

from trajectile.tools.addresses import AddressRefused, open_connection

CONNECT_TIMEOUT_S = 20.0
CHUNK_BYTES = 1 << 16
PROBLEMS_MAX = 1000
NO_AUTHENTICATION = b"\x05\x00"
CONNECT = 1
IPV4, NAME, IPV6 = 1, 3, 4
NOWHERE = b"\x00\x01" + bytes(6)
CONNECTED, REFUSED, UNREACHABLE = b"\x05\x00" + NOWHERE, b"\x05\x02" + NOWHERE, b"\x05\x04" + NOWHERE


class Gate:
    """Listens on loopback while it is open; `problems` says of hosts why the last connection failed."""

    def __init__(self, *, allow_private: bool) -> None:
        self.problems: dict[str, str] = {}
        self._allow_private = allow_private
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> str:
        """Start to listen, and return the address that a browser takes."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return f"socks5://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        if self._server:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            host, port = await _asked_for(reader, writer)
            if there := await self._connect(host, port, writer):
                await _relay((reader, writer), there)
        except (OSError, EOFError, ValueError, asyncio.CancelledError):
            pass  # either side went away, or close() ends this task
        finally:
            writer.close()

    async def _connect(
        self, host: str, port: int, writer: asyncio.StreamWriter
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                there = await open_connection(host, port, allow_private=self._allow_private)
        except OSError as error:
            if len(self.problems) >= PROBLEMS_MAX:
                self.problems.clear()
            self.problems[host.lower()] = _reason(error)
            writer.write(REFUSED if isinstance(error, AddressRefused) else UNREACHABLE)
            return None
        self.problems.pop(host.lower(), None)
        writer.write(CONNECTED)
        return there


async def _asked_for(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    """The host and port that a client wants to be connected to; ValueError where it wants something else."""
    _, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    writer.write(NO_AUTHENTICATION)
    _, command, _, kind = await reader.readexactly(4)
    if command != CONNECT:
        raise ValueError(f"command {command}")
    if kind == NAME:
        host = (await reader.readexactly((await reader.readexactly(1))[0])).decode("ascii")
    else:
        host = str(ip_address(await reader.readexactly({IPV4: 4, IPV6: 16}[kind])))
    return host, int.from_bytes(await reader.readexactly(2))


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return f"no connection within {CONNECT_TIMEOUT_S:g} s"
    if isinstance(error, socket.gaierror):
        return "the name of the host is not known"
    return str(error) if isinstance(error, AddressRefused) else str(error.strerror or error)


async def _relay(*ends: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    (reader, writer), (far_reader, far_writer) = ends
    try:
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
    finally:
        far_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
