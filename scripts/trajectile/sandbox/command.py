"""One running command, seen from outside: its channel to the keeper, its input and its output."""

import asyncio
import os
import socket
from contextlib import suppress
from typing import TypeVar

from trajectile.sandbox.base import OutputBuffer, SandboxDied

T = TypeVar("T")
READ_BYTES = 1 << 16
# A pipe holds 64 KiB; more reads than that needs would be of what leftovers print meanwhile.
PIPE_READS = 4


class Command:
    """Handed over to the server at once; `keeper` and `status` come true as the keeper says so, `gone` when it ends.

    What the command's leftovers print after its end is read and thrown away, so that they can go on.
    """

    def __init__(self, inbox: socket.socket, output: OutputBuffer, stdin: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self.keeper: asyncio.Future[int] = self._loop.create_future()
        self.status: asyncio.Future[int] = self._loop.create_future()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._output: OutputBuffer | None = output
        self._said = b""
        self._stdin = -1
        self._channel, theirs = socket.socketpair()
        self._stdout, printed = os.pipe()
        read = os.open(os.devnull, os.O_RDONLY)
        if stdin:
            os.close(read)
            read, self._stdin = os.pipe()
        try:
            socket.send_fds(inbox, [b"!"], [theirs.fileno(), read, printed])
        finally:
            theirs.close()
            os.close(read)
            os.close(printed)
        self._watch()

    def _watch(self) -> None:
        self._channel.setblocking(False)
        os.set_blocking(self._stdout, False)
        self._loop.add_reader(self._channel, self._hear)
        self._loop.add_reader(self._stdout, self._read)

    async def send(self, script: bytes) -> None:
        with suppress(ConnectionError):
            await self._loop.sock_sendall(self._channel, script)
            self._channel.shutdown(socket.SHUT_WR)

    async def feed(self, stdin: "asyncio.Queue[bytes | None]") -> None:
        """Write what comes through `stdin`, up to None, or as long as the command reads."""
        writer = await self._pipe_writer()
        try:
            with suppress(ConnectionError):
                while (part := await stdin.get()) is not None:
                    writer.write(part)
                    await writer.drain()
            writer.close()
        except asyncio.CancelledError:
            writer.transport.abort()
            raise

    async def _pipe_writer(self) -> asyncio.StreamWriter:
        reader = asyncio.StreamReader()
        pipe = os.fdopen(self._stdin, "wb", 0)
        self._stdin = -1
        transport, protocol = await self._loop.connect_write_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        return asyncio.StreamWriter(transport, protocol, reader, self._loop)

    def _hear(self) -> None:
        with suppress(BlockingIOError):
            try:
                said = self._channel.recv(READ_BYTES)
            except ConnectionError:
                said = b""
            if not said:
                self._loop.remove_reader(self._channel)
                self.fail("a command's keeper was killed")
                _settle(self.gone, None)
            *lines, self._said = (self._said + said).split(b"\n")
            for word, number in (line.split() for line in lines):
                _settle(self.keeper if word == b"keeper" else self.status, int(number))

    def _read(self) -> bool:
        """Take what lies in the pipe; whether there was anything."""
        try:
            chunk = os.read(self._stdout, READ_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._loop.remove_reader(self._stdout)
        elif self._output is not None:
            self._output.feed(chunk)
        return bool(chunk)

    def finish_output(self) -> None:
        """Take what the command had printed by now, and nothing after."""
        for _ in range(PIPE_READS):
            if self._stdout < 0 or not self._read():
                break
        self._output = None

    def fail(self, cause: str) -> None:
        for future in (self.keeper, self.status):
            if not future.done():
                future.set_exception(SandboxDied(cause))
                future.exception()  # it may have no reader: not worth a warning

    def close(self) -> None:
        if self._stdout < 0:
            return
        self.fail("the sandbox was closed")
        _settle(self.gone, None)
        self._loop.remove_reader(self._channel)
        self._loop.remove_reader(self._stdout)
        self._channel.close()
        for descriptor in (self._stdout, self._stdin):
            if descriptor >= 0:
                os.close(descriptor)
        self._stdout = self._stdin = -1


def _settle(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)
