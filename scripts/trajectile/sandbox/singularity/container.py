"""A container that one long-lived keeper runs in: start it, run commands through it, end it."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from trajectile.errors import PromptError
from trajectile.sandbox import processes
from trajectile.sandbox.base import OutputBuffer, SandboxDied
from trajectile.sandbox.command import Runner, break_off
from trajectile.sandbox.marks import Marks
from trajectile.sandbox.output import to_text
from trajectile.sandbox.singularity import tree as container_tree
from trajectile.sandbox.singularity.command import ContainerCommand
from trajectile.sandbox.singularity.tree import Process, Tree

START_TIMEOUT_S = 180.0
CLOSE_GRACE_S = 15.0
EXIT_GRACE_S = 2.0
KEEPER_GRACE_S = 1.0
CAUSE_BYTES = 1500
LINE_BYTES = 1 << 16


class Container(Runner[ContainerCommand]):
    """`launch` runs a keeper, whose shared folder is `folder`/shared; `folder`/log takes what goes to stderr."""

    def __init__(self, launch: list[str], env: dict[str, str], folder: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._folder = folder
        self.shell = "sh"
        self._marks = Marks()
        self._cause = ""
        self._said = b""
        self._commands: dict[str, ContainerCommand] = {}
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._first: Process | None = None
        self._mourning: asyncio.Task[None] | None = None
        self._shared = os.open(folder / "shared", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        heard, self._control = os.pipe()
        self._status, told = os.pipe()
        with ExitStack() as undo:
            for descriptor in (self._control, self._status, self._shared):
                undo.callback(os.close, descriptor)
            self._process = self._launch(launch, env, heard, told)
            undo.pop_all()
        self._tree = Tree(self._process.pid)
        for descriptor in (self._control, self._status):
            os.set_blocking(descriptor, False)
        self._loop.add_reader(self._status, self._hear)

    def _launch(self, program: list[str], env: dict[str, str], heard: int, told: int) -> "subprocess.Popen[bytes]":
        """Start the keeper with the ends of pipes that are its own, which are closed here."""
        try:
            with (self._folder / "log").open("wb") as log:
                return subprocess.Popen(program, env=env, cwd=self._folder, stdin=heard, stdout=told, stderr=log)
        finally:
            os.close(heard)
            os.close(told)

    async def started(self) -> None:
        """Wait for the keeper. PromptError with what the engine said where it does not come."""
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._ready
            self._first = self._tree.locate()
            (self._folder / "first").write_text(f"{self._first.pid} {self._first.started}")
        except (TimeoutError, SandboxDied, ProcessLookupError) as error:
            cause = str(error) or f"the container did not start within {START_TIMEOUT_S:.0f} s"
            raise PromptError("sandbox_start", cause) from error

    def begin(self, output: OutputBuffer, *, stdin: bool) -> ContainerCommand:
        if self._cause:
            raise SandboxDied(self._cause)
        try:
            mark = self._marks.next({command.mark for command in self._commands.values()})
            command = ContainerCommand(self._shared, self._control, mark, output, stdin=stdin)
        except OSError as error:
            raise SandboxDied(f"a command could not be started: {error.strerror or error}") from error
        self._commands[command.name] = command
        command.pipes.ended.add_done_callback(lambda _: self._loop.call_later(KEEPER_GRACE_S, self._doubt, command))
        command.gone.add_done_callback(lambda _: self._commands.pop(command.name, None))
        return command

    def _hear(self) -> None:
        with suppress(BlockingIOError):
            said = os.read(self._status, LINE_BYTES)
            if not said:
                self._loop.remove_reader(self._status)
                self._mourning = asyncio.ensure_future(self._mourn())
            *lines, self._said = (self._said + said).split(b"\n")
            self._said = self._said[-LINE_BYTES:]
            for line in lines:
                self._take(line.decode(errors="replace"))

    def _take(self, line: str) -> None:
        """Commands can write to the keeper's output as well: what makes no sense is passed over."""
        match line.split():
            case ["ready", shell, mark] if mark.removeprefix("-").isdecimal() and not self._ready.done():
                self.shell = shell
                self._marks.begin_above(int(mark))
                self._ready.set_result(None)
            case [("begin" | "exit") as word, name, number] if name in self._commands and number.isdecimal():
                self._commands[name].hear(word, int(number))

    def _doubt(self, command: ContainerCommand) -> None:
        """Nothing can print any more: a shell that is gone without a word of its keeper was killed with it."""
        if command.began.done() and not command.status.done() and not self._tree.marked(command.mark):
            command.hear("exit", 128 + signal.SIGKILL)

    async def kill(self, command: ContainerCommand) -> None:
        await asyncio.shield(command.began)
        await self._tree.end(command.mark)

    async def end(self, command: ContainerCommand) -> None:
        await super().end(command)
        command.pipes.finish_output()
        command.close()

    async def _mourn(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(EXIT_GRACE_S):
                await processes.exited(self._process)
        self._break_off(self._cause or self._find_cause())

    def _find_cause(self) -> str:
        said = to_text((self._folder / "log").read_bytes()[-CAUSE_BYTES:]).strip()
        status = f"status {self._process.returncode}"
        if self._first:
            said = f"killed, for lack of memory or from outside ({status}) {said}".strip()
        return f"the container ended: {said or status}"

    def _break_off(self, cause: str) -> None:
        self._cause = cause
        break_off(self._ready, cause)
        for command in list(self._commands.values()):
            command.fail(cause)
            command.close()

    async def close(self, cause: str = "the sandbox was closed") -> None:
        """End the container and everything in it; returns when they are gone."""
        if self._control < 0:
            return
        self._break_off(self._cause or cause)
        self._loop.remove_reader(self._status)
        if self._mourning:
            self._mourning.cancel()
        for descriptor in (self._control, self._status, self._shared):
            os.close(descriptor)
        self._control = -1
        if self._first:
            container_tree.kill(self._first)
        await processes.end(self._process, CLOSE_GRACE_S)


def end_left(folders: Sequence[Path]) -> None:
    """End what runs in the containers of these folders, whose owners are dead."""
    for folder in folders:
        with suppress(OSError, ValueError):
            pid, started = (folder / "first").read_text().split()
            container_tree.kill(Process(int(pid), started))
