"""A connection to a container's process: its output in frames, its input raw."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from trajectile.sandbox.streams import ProcessStream

HEAD_END = b"\r\n\r\n"
FRAME_HEAD = 8


class Stream(ProcessStream):
    """As the engine's API has it: the output in frames, the input raw."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield what the process prints, up to its end or that of the connection.

        What comes in no frame is the engine's own word on why there is no process.
        """
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await self._reader.readexactly(FRAME_HEAD)
                if head[0] > 2 or any(head[1:4]):
                    yield head + await self._reader.read()
                    return
                yield await self._reader.readexactly(int.from_bytes(head[4:], "big"))

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def end_input(self) -> None:
        with suppress(OSError, RuntimeError):
            self._writer.write_eof()

    def close(self) -> None:
        self._writer.close()
