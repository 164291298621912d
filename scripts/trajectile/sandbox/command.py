"""One running command, seen from outside, and how any backend that keeps a supervisor runs one to its end."""

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from trajectile.sandbox.base import ExecResult, OutputBuffer, SandboxDied

T = TypeVar("T")
KILL_GRACE_S = 10.0


class Channels(Protocol):
    """A command's standard input and output; `ended` comes true when nothing can print any more."""

    ended: "asyncio.Future[None]"

    async def feed(self, stdin: "asyncio.Queue[bytes | None]") -> None: ...

    def finish_output(self) -> None: ...

    def close(self) -> None: ...


class Command(ABC):
    """`status` comes true as its supervisor says so, `gone` when nothing of it is left."""

    def __init__(self, pipes: Channels) -> None:
        loop = asyncio.get_running_loop()
        self.status: asyncio.Future[int] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()
        self.pipes = pipes

    @abstractmethod
    async def send(self, script: bytes) -> None: ...

    def fail(self, cause: str) -> None:
        break_off(self.status, cause)

    def close(self) -> None:
        self.fail("the sandbox was closed")
        settle(self.gone, None)
        self.pipes.close()


C = TypeVar("C", bound=Command)


class Runner(ABC, Generic[C]):
    """Runs commands; the backend says how one begins and how all that it started is killed.

    `shell` is what scripts are written for, known once the sandbox has `started`.
    """

    shell = "bash"

    @abstractmethod
    async def started(self) -> None:
        """Wait until commands can be run. PromptError where the sandbox does not come up."""

    @abstractmethod
    def begin(self, output: OutputBuffer, *, stdin: bool) -> C:
        """A command that waits for its script. Raises SandboxDied."""

    @abstractmethod
    async def kill(self, command: C) -> None:
        """Kill all that a command started, and wait until it is gone."""

    @abstractmethod
    async def close(self, cause: str = "the sandbox was closed") -> None:
        """End the sandbox and everything in it; later commands fail with `cause`."""

    async def end(self, command: C) -> None:
        """Kill all that a command started; where that fails, the whole sandbox."""
        try:
            async with asyncio.timeout(KILL_GRACE_S):
                await self.kill(command)
        except (SandboxDied, ConnectionError):
            pass  # the next command will say so
        except OSError:  # a timeout too
            await self.close("a command could not be killed")

    async def run(
        self,
        script: str,
        *,
        timeout_s: float | None,
        output: OutputBuffer,
        stdin: "asyncio.Queue[bytes | None] | None",
    ) -> ExecResult:
        """Run a bash script; its deadline and cancellation end everything it started. Raises SandboxDied."""
        command = self.begin(output, stdin=stdin is not None)
        feed = asyncio.ensure_future(command.pipes.feed(stdin)) if stdin is not None else None
        status, ended = -9, False
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await command.send(script.encode())
                    status, ended = await asyncio.shield(command.status), True
        finally:
            if feed is not None:
                feed.cancel()
            if not ended:
                await asyncio.shield(asyncio.ensure_future(self.end(command)))
            command.pipes.finish_output()
        exit_code = status if status >= 0 else 128 - status
        return ExecResult(output.value(), exit_code, not ended)


def settle(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)


def break_off(future: "asyncio.Future[T]", cause: str) -> None:
    if not future.done():
        future.set_exception(SandboxDied(cause))
        future.exception()  # it may have no reader: not worth a warning
