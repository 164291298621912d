"""A running Modal sandbox: its guard, the commands in it, and how it came to an end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import modal
from modal.container_process import ContainerProcess
from modal.exception import Error

from trajectile.sandbox.guarded import GuardedContainer
from trajectile.sandbox.guarded_command import GuardedCommand
from trajectile.sandbox.streams import ProcessStream

# Modal takes 2 MiB between two calls of drain.
WRITE_BYTES = 1 << 20
MEANING = {124: "it reached the longest life that Modal gives it", 137: "terminated, or out of memory"}


class ModalStream(ProcessStream):
    """A process that the SDK started."""

    def __init__(self, process: "ContainerProcess[bytes]") -> None:
        self._process = process
        self._ending: asyncio.Task[None] | None = None

    async def parts(self) -> AsyncIterator[bytes]:
        with suppress(Error):
            async for part in self._process.stdout:
                yield part

    async def write(self, data: bytes) -> None:
        try:
            for start in range(0, len(data), WRITE_BYTES):
                self._process.stdin.write(data[start : start + WRITE_BYTES])
                await self._process.stdin.drain.aio()
        except Error as error:
            raise ConnectionError(str(error)) from error

    def end_input(self) -> None:
        self._process.stdin.write_eof()
        self._ending = asyncio.ensure_future(self._flush())

    async def _flush(self) -> None:
        with suppress(Error):
            await self._process.stdin.drain.aio()

    def close(self) -> None:
        if self._ending:
            self._ending.cancel()

    async def status(self) -> int:
        return await self._process.wait.aio()


class ModalContainer(GuardedContainer):
    """`sandbox`, with a guard at the other end of `stream`; commands begin in `folder`."""

    def __init__(self, sandbox: modal.Sandbox, stream: ModalStream, folder: str) -> None:
        super().__init__(stream, folder)
        self._sandbox = sandbox
        self._streams: dict[str, ModalStream] = {}

    async def open(self, command: GuardedCommand, program: list[str]) -> ModalStream:
        stream = ModalStream(await self._sandbox.exec.aio(*program, text=False))
        self._streams[command.token] = stream
        command.gone.add_done_callback(lambda _: self._streams.pop(command.token, None))
        return stream

    async def status_of(self, command: GuardedCommand) -> int:
        return await self._streams[command.token].status()

    async def find_cause(self) -> str:
        status = await self._sandbox.poll.aio()
        if status is None:
            return ""
        return f"the Modal sandbox ended: {MEANING.get(status, f'status {status}')}"
