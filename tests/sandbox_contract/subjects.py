"""The kinds of sandboxes under test, each opened as a run opens it."""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trajectile.configuration.settings import load_settings
from trajectile.rows import PromptRow
from trajectile.run_folder.paths import RunFolder
from trajectile.sandbox import isolation, landlock_rules
from trajectile.sandbox.backend import Backend
from trajectile.sandbox.base import Sandbox
from trajectile.sandbox.factory import make_backend

from sandbox_contract import engines

KEY = "c0" * 32
Test = Callable[[Sandbox], Awaitable[None]]


@dataclass
class Subject:
    """A kind of sandbox; `images` are two that differ in /etc/mark, `sees_host` is true where nothing is isolated."""

    name: str
    root: Path
    settings: dict[str, Any]
    images: tuple[str, ...] = ("", "")
    sees_host: bool = False
    engine: str | None = None
    variables: frozenset[str] = field(default_factory=frozenset)
    shared: Backend = field(init=False)

    @property
    def in_container(self) -> bool:
        return bool(self.images[0])

    def backend(self, **settings: Any) -> Backend:
        given = {"run_name": "contract", "output_limit": 20_000, **self.settings, **settings}
        return make_backend(load_settings(given), RunFolder(self.root))

    @asynccontextmanager
    async def opened(self, image: str = "", cwd: str = "", **settings: Any) -> AsyncIterator[Sandbox]:
        backend = self.backend(**settings)
        sandbox = backend.open(PromptRow(0, KEY, 0, [], image=image, cwd=cwd))
        try:
            await sandbox.start()
            yield sandbox
        finally:
            await sandbox.close()
            backend.close()

    def run(self, test: Test, **options: Any) -> None:
        """Run a test in a sandbox of its own, of which nothing may be left."""

        async def run() -> None:
            async with self.opened(**options) as sandbox:
                await test(sandbox)

        asyncio.run(run())
        assert self.left() == []

    def left(self) -> list[str]:
        """Return what there still is of this subject's sandboxes."""
        return [*self._folders(), *self.containers(), *running(str(self.root))]

    def _folders(self) -> Iterator[str]:
        scratch = RunFolder(self.root).scratch
        yield from (path.name for path in scratch.iterdir()) if scratch.exists() else ()

    def containers(self) -> list[str]:
        """Return the ids of the containers there are, running or not."""
        if not self.name.startswith(("docker", "podman")):
            return []
        filters: dict[str, Any] = {"label": f"trajectile.run={self.root}"}
        return [found.id for found in engines.client(self.engine).containers.list(all=True, filters=filters)]


def local(layer: str) -> tuple[str, Callable[[Path], Subject]]:
    problems = {"bwrap": isolation.bwrap_problem, "landlock": landlock_rules.problem, "none": str}
    settings = {"sandbox": "local", "local_isolation": layer}
    return problems[layer](), lambda root: Subject(f"local-{layer}", root, settings, sees_host=layer == "none")


def container(name: str, address: str | None, problem: str) -> tuple[str, Callable[[Path], Subject]]:
    def make(root: Path) -> Subject:
        images = tuple(engines.image(address, mark) for mark in engines.MARKS)
        settings = {"sandbox": "docker", "sandbox_image": images[0], "image_pull": "never", "sandbox_memory": "512m"}
        variables = frozenset({"HOSTNAME", "IMAGE", "container"})
        return Subject(name, root, settings, images, engine=address, variables=variables)

    return problem or engines.problem(address), make


def singularity() -> tuple[str, Callable[[Path], Subject]]:
    def make(root: Path) -> Subject:
        images = tuple(str(engines.roots()[mark]) for mark in engines.MARKS)
        settings = {"sandbox": "singularity", "sandbox_image": images[0], "sandbox_memory": "512m"}
        return Subject("singularity", root, settings, images)

    found = shutil.which("apptainer") or shutil.which("singularity")
    return "" if found else "neither apptainer nor singularity is in PATH", make


def podman() -> tuple[str, Callable[[Path], Subject]]:
    address = engines.podman()
    return container("podman", address, "" if address else f"{engines.PODMAN} does not say where podman listens")


SUBJECTS: dict[str, Callable[[], tuple[str, Callable[[Path], Subject]]]] = {
    "local-bwrap": lambda: local("bwrap"),
    "local-landlock": lambda: local("landlock"),
    "local-none": lambda: local("none"),
    "docker": lambda: container("docker", os.environ.get("DOCKER_HOST"), ""),
    "podman": podman,
    "singularity": singularity,
}
MARKERS = {"docker": "docker", "podman": "podman", "singularity": "apptainer"}


async def said(sandbox: Sandbox, command: str, timeout_s: float = 60) -> str:
    return (await sandbox.exec(command, timeout_s=timeout_s)).output.decode()


def running(mark: str) -> list[str]:
    """Return the pids of the processes, in any sandbox, whose command line holds `mark`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "cmdline").read_bytes() and int(entry.name) != os.getpid():
                found.append(entry.name)
        except OSError:
            continue
    return found


def gone(mark: str, within_s: float = 10) -> bool:
    end = time.monotonic() + within_s
    while running(mark) and time.monotonic() < end:
        time.sleep(0.02)
    return not running(mark)
