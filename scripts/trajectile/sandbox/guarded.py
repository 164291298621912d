"""A running container whose guard and commands are reached through streams, whatever engine runs it."""

import asyncio
from abc import abstractmethod
from contextlib import suppress

from trajectile.errors import PromptError
from trajectile.sandbox.base import OutputBuffer, SandboxDied
from trajectile.sandbox.command import Runner, break_off, settle
from trajectile.sandbox.guard import SAYS_KILLED, SAYS_NO_FOLDER, SAYS_READY, launch
from trajectile.sandbox.guarded_command import GuardedCommand
from trajectile.sandbox.marks import Marks
from trajectile.sandbox.streams import ProcessStream

START_TIMEOUT_S = 60.0
# How long the end of a container may come after that of a command in it, and its cause after its end.
LOSS_GRACE_S = 1.0
CAUSE_GRACE_S = 10.0
POLL_S = 0.05
CAUSE_BYTES = 500


class GuardedContainer(Runner[GuardedCommand]):
    """A guard is at the other end of `stream`; commands begin in `folder`."""

    def __init__(self, stream: ProcessStream, folder: str) -> None:
        loop = asyncio.get_running_loop()
        self.shell = "sh"
        self._stream, self._folder = stream, folder
        self._setsid = ""
        self._marks = Marks()
        self._cause = self._said = ""
        self._ready: asyncio.Future[None] = loop.create_future()
        self._cut: asyncio.Future[None] = loop.create_future()
        self._lost: asyncio.Future[None] = loop.create_future()
        self._kills: dict[str, asyncio.Future[None]] = {}
        self._commands: dict[int, GuardedCommand] = {}
        self._finishing: set[asyncio.Task[None]] = set()
        self._listening = asyncio.create_task(self._listen())

    async def started(self) -> None:
        """Wait for the guard. PromptError where it does not come."""
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._ready
        except TimeoutError:
            raise PromptError("sandbox_start", f"the container was not ready in {START_TIMEOUT_S:.0f} s") from None
        except SandboxDied as error:
            raise PromptError("sandbox_start", str(error)) from error

    def begin(self, output: OutputBuffer, *, stdin: bool) -> GuardedCommand:
        if self._lost.done():
            raise SandboxDied(self._cause)
        command = GuardedCommand(self._marks.next(self._commands), output, self._open, stdin=stdin)
        self._commands[command.mark] = command
        command.pipes.ended.add_done_callback(lambda _: self._over(command))
        return command

    def _over(self, command: GuardedCommand) -> None:
        task = asyncio.ensure_future(self._finish(command))
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)

    async def _open(self, command: GuardedCommand, script: bytes) -> ProcessStream:
        text = launch(setsid=self._setsid, shell=self.shell, stdin=command.stdin)
        arguments = [str(command.mark), command.token, self._folder, self.shell, script.decode()]
        return await self.open(command, ["sh", "-c", text, "sh", *arguments])

    @abstractmethod
    async def open(self, command: GuardedCommand, program: list[str]) -> ProcessStream:
        """Run a program in the container, stderr with stdout, stdin where the command has one."""

    @abstractmethod
    async def status_of(self, command: GuardedCommand) -> int:
        """How the program ended that `command` was opened with."""

    @abstractmethod
    async def find_cause(self) -> str:
        """How the container ended, "" while it lives."""

    async def _finish(self, command: GuardedCommand) -> None:
        """An exec is over: where its status did not come with its output, its engine or its container's end tells."""
        if not command.status.done():
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._cut), LOSS_GRACE_S)
                await asyncio.shield(self._lost)
            if self._lost.done() or command.problem:
                command.fail(self._cause or command.problem)
            else:
                await self._ask_status(command)
        self._commands.pop(command.mark, None)
        command.close()

    async def _ask_status(self, command: GuardedCommand) -> None:
        try:
            settle(command.status, await self.status_of(command))
        except Exception as error:
            command.fail(str(error))

    async def kill(self, command: GuardedCommand) -> None:
        await asyncio.wait([command.begun, command.pipes.ended], return_when=asyncio.FIRST_COMPLETED)
        if self._lost.done():
            raise SandboxDied(self._cause)
        self._kills[str(command.mark)] = killed = asyncio.get_running_loop().create_future()
        await self._stream.write(f"{command.mark}\n".encode())
        await killed
        await asyncio.shield(command.pipes.ended)

    async def _listen(self) -> None:
        rest = b""
        async for part in self._stream.parts():
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                self._take(line.decode(errors="replace").strip())
            rest = rest[-CAUSE_BYTES:]
        settle(self._cut, None)
        self._die(await self._find_cause())

    def _take(self, line: str) -> None:
        match line.split():
            case [word, shell, setsid, mark] if word == SAYS_READY and not self._ready.done():
                self.shell, self._setsid = shell, setsid.removeprefix("-")
                self._marks.begin_above(int(mark))
                settle(self._ready, None)
            case [word, mark] if word == SAYS_KILLED and mark in self._kills:
                settle(self._kills.pop(mark), None)
            case [word] if word == SAYS_NO_FOLDER and not self._ready.done():
                self._ready.set_exception(PromptError("bad_cwd", f"cwd {self._folder!r} cannot be made or entered"))
            case [_, *_] if not self._ready.done():
                self._said = f": {line[:CAUSE_BYTES]}"

    def _die(self, cause: str) -> None:
        self._cause = self._cause or cause
        for future in (self._cut, self._lost):
            settle(future, None)
        for future in (self._ready, *self._kills.values()):
            break_off(future, self._cause)
        for command in list(self._commands.values()):
            command.fail(self._cause)

    async def _find_cause(self) -> str:
        try:
            async with asyncio.timeout(CAUSE_GRACE_S):
                while not (cause := await self.find_cause()):  # noqa: ASYNC110
                    await asyncio.sleep(POLL_S)
                return f"{cause}{self._said}"
        except TimeoutError:
            return "the connection to the container was lost"
        except Exception as error:
            return str(error)

    async def close(self, cause: str = "the sandbox was closed") -> None:
        """Let go of the container, whose guard ends with the connection to it."""
        self._cause = self._cause or cause
        self._listening.cancel()
        self._die(cause)
        for command in list(self._commands.values()):
            command.close()
        self._stream.close()
