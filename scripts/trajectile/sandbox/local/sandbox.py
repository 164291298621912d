"""A sandbox on this machine: a scratch folder, and a supervisor behind bubblewrap, Landlock or nothing."""

import asyncio
import posixpath
from pathlib import Path

from trajectile.errors import PromptError
from trajectile.sandbox import scratch
from trajectile.sandbox.base import SandboxDied
from trajectile.sandbox.local import isolation
from trajectile.sandbox.local.supervision import Supervisor
from trajectile.sandbox.shell import ShellSandbox


class LocalSandbox(ShellSandbox):
    """A scratch folder under `parent`, removed by `close`; it is made, and its supervisor starts, with the first
    command.

    `isolation` is one of isolation.CHOICES, `network` one of isolation.NETWORKS. `cwd` is a folder inside the scratch
    folder, made if need be; an absolute one counts from there too. PromptError for a `cwd` that leads out of it,
    FatalError from `start` where the isolation does not work on this machine.
    """

    def __init__(
        self, parent: Path, isolation: str, *, cwd: str = "", output_limit: int, network: str = "auto"
    ) -> None:
        self.output_limit = output_limit
        self._parent = parent
        self._isolation = isolation
        self._network = network
        self._cwd = inner_folder(cwd)
        self._folder: Path | None = None
        self._supervisor: Supervisor | None = None

    async def start(self) -> None:
        self._layer = isolation.resolve(self._isolation, self._network)
        self._folder = scratch.unused(self._parent)
        self.state_dir = isolation.layout(self._layer, self._folder, self._cwd).state
        try:
            if self._cwd:
                self._make_home(self._folder)
        except OSError as error:
            raise PromptError("bad_cwd", f"cwd {self._cwd!r} cannot be made: {error.strerror}") from error

    def _make_home(self, folder: Path) -> None:
        (folder / "home" / self._cwd).mkdir(parents=True, exist_ok=True)

    def runner(self) -> Supervisor:
        if self._folder is None:
            raise SandboxDied("the sandbox is not started, or closed")
        if self._supervisor is None:
            try:
                self._make_home(self._folder)
                network = isolation.NETWORKS[self._network]
                launch = isolation.prepare(self._layer, self._folder, self._cwd, network=network)
                self._supervisor = Supervisor(launch, self._folder / "log")
            except OSError as error:
                raise SandboxDied(f"the local sandbox did not start: {error}") from error
        return self._supervisor

    async def close(self) -> None:
        folder, self._folder = self._folder, None
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            await supervisor.close()
        if folder is not None and folder.exists():
            await asyncio.to_thread(scratch.remove, folder)


def inner_folder(cwd: str) -> str:
    """`cwd` as a path relative to the scratch folder, "" for the folder itself."""
    path = posixpath.normpath(cwd.lstrip("/") or ".")
    if path == ".." or path.startswith("../") or "\x00" in path:
        raise PromptError("bad_cwd", f"cwd {cwd!r} leads out of the sandbox")
    return "" if path == "." else path
