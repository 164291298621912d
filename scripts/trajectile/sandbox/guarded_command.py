"""One command in a guarded container: a program of its own, its input, its output, its status."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress

from trajectile.sandbox.base import OutputBuffer
from trajectile.sandbox.command import Command, settle
from trajectile.sandbox.streams import ProcessStream

Opener = Callable[["GuardedCommand", bytes], Awaitable[ProcessStream]]


class ExecOutput:
    """Tells what a command prints from what stands around it: a NUL before, a NUL, the token and the status after."""

    def __init__(self, token: str, output: OutputBuffer) -> None:
        self.begun = False
        self.status: int | None = None
        self._end = f"\0{token} ".encode()
        self._output: OutputBuffer | None = output
        self._held = b""

    def take(self, part: bytes) -> None:
        held = self._held + part
        if not self.begun and held.startswith(b"\0"):
            self.begun, held = True, held[1:]
        before, end, after = held.partition(self._end)
        if not end:
            before, after = _without_beginning(held, self._end)
        self._held = end + after
        self._feed(before)
        status, newline, _ = after.partition(b"\n")  # leftovers may have printed on after it
        if newline:
            self.status = int(status)
            self.stop()

    def _feed(self, data: bytes) -> None:
        if self._output is not None and data:
            self._output.feed(data)

    def stop(self) -> None:
        """Take nothing more: what leftovers print is thrown away, so that they can go on."""
        if self.status is None:
            self._feed(self._held)
        self._output, self._held = None, b""


def _without_beginning(data: bytes, word: bytes) -> tuple[bytes, bytes]:
    """Return `data` without the beginning of `word` at its end, and that beginning."""
    at = data.rfind(word[:1], max(0, len(data) - len(word)))
    return (data[:at], data[at:]) if at >= 0 and word.startswith(data[at:]) else (data, b"")


class ExecPipes:
    """Both directions of a command's exec, once there is one; `ended` when it is over."""

    def __init__(self, token: str, output: OutputBuffer) -> None:
        self.output = ExecOutput(token, output)
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stream: asyncio.Future[ProcessStream] = asyncio.get_running_loop().create_future()

    def open(self, stream: ProcessStream) -> None:
        settle(self._stream, stream)

    async def feed(self, stdin: "asyncio.Queue[bytes | None]") -> None:
        """Write what comes through `stdin`, up to None, or as long as the command reads."""
        stream = await asyncio.shield(self._stream)
        with suppress(ConnectionError):
            while (part := await stdin.get()) is not None:
                await stream.write(part)
            stream.end_input()

    def finish_output(self) -> None:
        self.output.stop()

    def close(self) -> None:
        if self._stream.done():
            self._stream.result().close()


class GuardedCommand(Command):
    """`mark` is what its processes bear; `opener` starts the exec; `begun` comes true when the mark is set.

    `problem` says why there is no exec, where there is none.
    """

    pipes: ExecPipes

    def __init__(self, mark: int, output: OutputBuffer, opener: Opener, *, stdin: bool) -> None:
        self.mark, self.stdin = mark, stdin
        self.token = secrets.token_hex(8)
        self.exec_id = self.problem = ""
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        super().__init__(ExecPipes(self.token, output))
        self._opener = opener
        self._running: asyncio.Task[None] | None = None

    async def send(self, script: bytes) -> None:
        """Start the exec; it is started, and can be ended, even where the caller is cancelled meanwhile."""
        self._running = asyncio.create_task(self._run(script))

    async def _run(self, script: bytes) -> None:
        try:
            stream = await self._opener(self, script)
            self.pipes.open(stream)
            async for part in stream.parts():
                self._take(part)
        except Exception as error:
            self.problem = str(error) or type(error).__name__
        finally:
            settle(self.pipes.ended, None)

    def _take(self, part: bytes) -> None:
        self.pipes.output.take(part)
        if self.pipes.output.begun:
            settle(self.begun, None)
        if self.pipes.output.status is not None:
            settle(self.status, self.pipes.output.status)

    def close(self) -> None:
        super().close()
        if self._running:
            self._running.cancel()
