"""Our ends of a command's standard input and output."""

import asyncio
import os
from contextlib import suppress

from trajectile.sandbox.base import OutputBuffer

READ_BYTES = 1 << 16
# A pipe holds 64 KiB; more reads than that needs would be of what leftovers print meanwhile.
PIPE_READS = 4


class Pipes:
    """Reads `stdout` into `output` from now on; `feed` writes to `stdin` (-1 for none). Closes both descriptors.

    `ended` comes true when nothing can print any more. What the command's leftovers print after its end is read and
    thrown away, so that they can go on.
    """

    def __init__(self, stdout: int, stdin: int, output: OutputBuffer) -> None:
        self._loop = asyncio.get_running_loop()
        self._stdout, self._stdin = stdout, stdin
        self._output: OutputBuffer | None = output
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(stdout, False)
        self._loop.add_reader(stdout, self._read)

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
            if not writer.transport.is_closing():  # it is, where the command has ended
                writer.transport.abort()
            raise

    async def _pipe_writer(self) -> asyncio.StreamWriter:
        reader = asyncio.StreamReader()
        pipe = os.fdopen(self._stdin, "wb", 0)
        self._stdin = -1
        transport, protocol = await self._loop.connect_write_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        return asyncio.StreamWriter(transport, protocol, reader, self._loop)

    def _read(self) -> bool:
        """Take what lies in the pipe; whether there was anything."""
        try:
            chunk = os.read(self._stdout, READ_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._loop.remove_reader(self._stdout)
            if not self.ended.done():
                self.ended.set_result(None)
        elif self._output is not None:
            self._output.feed(chunk)
        return bool(chunk)

    def finish_output(self) -> None:
        """Take what the command had printed by now, and nothing after."""
        for _ in range(PIPE_READS):
            if self._stdout < 0 or not self._read():
                break
        self._output = None

    def close(self) -> None:
        if self._stdout >= 0:
            self._loop.remove_reader(self._stdout)
        for descriptor in (self._stdout, self._stdin):
            if descriptor >= 0:
                os.close(descriptor)
        self._stdout = self._stdin = -1
