"""One command in a container: its named pipes in a folder that both sides see."""

import asyncio
import os
import secrets
import stat
from contextlib import ExitStack, suppress

from trajectile.sandbox.base import OutputBuffer, SandboxDied
from trajectile.sandbox.command import Command, break_off, settle
from trajectile.sandbox.pipes import Pipes

OURS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ContainerCommand(Command):
    """`shared` is the open folder, `control` the keeper's input; `began` comes true when the command bears its mark.

    Commands can write in that folder too: names are not to be guessed, links not followed, and what is opened must be
    what was made.
    """

    def __init__(self, shared: int, control: int, mark: int, output: OutputBuffer, *, stdin: bool) -> None:
        self.name = secrets.token_hex(8)
        self.began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.mark = mark
        self._shared, self._control = shared, control
        self._held = -1
        stdout, fed = self._pipes(stdin=stdin)
        super().__init__(Pipes(stdout, fed, output))
        self.began.add_done_callback(lambda _: self._release())

    def _pipes(self, *, stdin: bool) -> tuple[int, int]:
        with ExitStack() as undo:
            stdout, fed = self._pipe("out", os.O_RDONLY, undo), -1
            if stdin:  # neither end of a pipe can be opened alone, and ours may be closed before theirs is opened
                self._held = self._pipe("in", os.O_RDWR, undo)
                fed = self._open("in", os.O_WRONLY)
            undo.pop_all()
        return stdout, fed

    def _pipe(self, kind: str, mode: int, undo: ExitStack) -> int:
        os.mkfifo(f"{self.name}.{kind}", 0o600, dir_fd=self._shared)
        descriptor = self._open(kind, mode)
        undo.callback(os.close, descriptor)
        return descriptor

    def _open(self, kind: str, mode: int) -> int:
        descriptor = os.open(f"{self.name}.{kind}", mode | OURS, dir_fd=self._shared)
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise FileExistsError(f"a command replaced {self.name}.{kind}")
        return descriptor

    async def send(self, script: bytes) -> None:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | OURS
            with os.fdopen(os.open(f"{self.name}.script", flags, 0o600, dir_fd=self._shared), "wb") as file:
                file.write(script)
            os.write(self._control, f"{self.name} {self.mark}\n".encode())
        except OSError as error:
            self.fail(f"a command could not be started: {error.strerror}")
            raise SandboxDied(f"a command could not be started: {error.strerror}") from error

    def _release(self) -> None:
        """The command has opened its ends."""
        for kind in ("in", "out", "script"):
            with suppress(OSError):
                os.unlink(f"{self.name}.{kind}", dir_fd=self._shared)
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def hear(self, word: str, number: int) -> None:
        settle(self.began, None)
        if word == "exit":
            settle(self.status, number)
            self.pipes.ended.add_done_callback(lambda _: self.close())

    def fail(self, cause: str) -> None:
        break_off(self.began, cause)
        super().fail(cause)
