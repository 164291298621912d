"""What every sandbox backend offers."""

import asyncio
from abc import ABC, abstractmethod
from typing import NamedTuple

from trajectile.errors import PromptError


class SandboxDied(PromptError):
    """The sandbox is gone in mid-episode; the message names the cause."""

    def __init__(self, message: str) -> None:
        super().__init__("sandbox_died", message)


class ExecResult(NamedTuple):
    """Merged stdout and stderr (bounded, with a note where cut), exit code, and whether the deadline ended it."""

    output: bytes
    exit_code: int
    timed_out: bool


class OutputBuffer(ABC):
    """Takes what a command prints, in order; may be read while the command runs."""

    @abstractmethod
    def feed(self, chunk: bytes) -> None: ...

    @abstractmethod
    def value(self) -> bytes: ...


class Sandbox(ABC):
    """A prompt's own machine. Working directory and exported variables last from one `exec` to the next.

    `exec` runs a bash command. Cancelling it, like its deadline, kills the whole process tree it started, and the
    next `exec` works. All raise SandboxDied once the sandbox is gone. File paths are relative to the current working
    directory or absolute inside the sandbox; `read_file` and `write_file` raise OSError subclasses as open() would.
    `image` and `image_digest` name what it runs, "" where that is no image.
    """

    image = ""
    image_digest = ""

    @abstractmethod
    async def start(self) -> None: ...

    @abstractmethod
    async def exec(
        self,
        command: str,
        *,
        timeout_s: float | None,
        output: OutputBuffer | None = None,
        stdin: "asyncio.Queue[bytes | None] | None" = None,
        persist: bool = True,
    ) -> ExecResult:
        """Run `command`; `stdin` is fed as it comes and closed by None, empty input where it is not given.

        Without `persist` the command's `cd` and `export` are forgotten when it ends.
        """

    @abstractmethod
    async def read_file(self, path: str) -> bytes: ...

    @abstractmethod
    async def write_file(self, path: str, data: bytes) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...
