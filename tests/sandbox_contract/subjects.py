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

from modal_standin import shared
from trajectile.configuration.settings import load_settings
from trajectile.rows import PromptRow
from trajectile.run_folder.paths import RunFolder
from trajectile.sandbox.backend import Backend
from trajectile.sandbox.base import Sandbox
from trajectile.sandbox.factory import make_backend
from trajectile.sandbox.limits import Limits
from trajectile.sandbox.local import isolation, landlock_rules
from trajectile.sandbox.singularity import apptainer

from sandbox_contract import engines

KEY = "c0" * 32
ENGINES = ("docker", "podman")
Test = Callable[[Sandbox], Awaitable[None]]


@dataclass
class Subject:
    """A kind of sandbox; `images` are two that `mark` tells apart, `sees_host` is true where nothing is isolated.

    `lacks` gives the reason for each of: limits, isolation, root, that this kind or this machine has nothing of.
    """

    name: str
    root: Path
    settings: dict[str, Any]
    images: tuple[str, ...] = ("", "")
    mark: str = "cat /etc/mark"
    sees_host: bool = False
    engine: str | None = None
    variables: frozenset[str] = field(default_factory=frozenset)
    lacks: dict[str, str] = field(default_factory=dict)
    shared: Backend = field(init=False, repr=False)

    @property
    def in_container(self) -> bool:
        return bool(self.images[0])

    @property
    def scratch(self) -> Path:
        return RunFolder(self.root).scratch

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
        return [*self.folders(), *self.containers(), *running(str(self.root))]

    def folders(self) -> Iterator[str]:
        yield from (str(path) for path in self.scratch.iterdir()) if self.scratch.exists() else ()

    def containers(self) -> list[str]:
        """Return the ids of the containers there are, running or not."""
        if self.name == "modal":
            return shared.running().living(str(self.root))
        if self.name not in ENGINES:
            return []
        filters: dict[str, Any] = {"label": f"trajectile.run={self.root}"}
        return [found.id for found in engines.client(self.engine).containers.list(all=True, filters=filters)]

    def engine_wide(self) -> set[str]:
        """Return the volumes and networks that an engine has, and the machine's mounts of images."""
        if self.name not in ENGINES:
            return {line for line in Path("/proc/mounts").read_text().splitlines() if "session" in line}
        client = engines.client(self.engine)
        return {volume.name for volume in client.volumes.list()} | {network.id for network in client.networks.list()}


Kind = tuple[str, Callable[[Path], Subject]]
NO_LIMITS = "limits are for containers"


def local(layer: str) -> Kind:
    problems = {"bwrap": isolation.bwrap_problem, "landlock": landlock_rules.problem, "none": str}
    settings = {"sandbox": "local", "local_isolation": layer}
    lacks = {"limits": NO_LIMITS} | ({"isolation": "commands have the caller's rights"} if layer == "none" else {})

    def make(root: Path) -> Subject:
        return Subject(f"local-{layer}", root, settings, sees_host=layer == "none", lacks=lacks)

    return problems[layer](), make


def container(name: str, address: str | None, problem: str) -> Kind:
    def make(root: Path) -> Subject:
        images = tuple(engines.image(address, mark) for mark in engines.MARKS)
        settings = {"sandbox": "docker", "sandbox_image": images[0], "image_pull": "never", "sandbox_memory": "512m"}
        variables = frozenset({"HOSTNAME", "IMAGE", "container"})
        return Subject(name, root, settings, images, engine=address, variables=variables)

    return problem or engines.problem(address), make


def docker() -> Kind:
    return container("docker", os.environ.get("DOCKER_HOST"), "")


def podman() -> Kind:
    address = engines.podman()
    return container("podman", address, "" if address else f"{engines.PODMAN} does not say where podman listens")


def singularity() -> Kind:
    def make(root: Path) -> Subject:
        images = tuple(str(engines.roots()[mark]) for mark in engines.MARKS)
        settings = {"sandbox": "singularity", "sandbox_image": images[0]}
        problem = apptainer.problem(apptainer.Options(limits=Limits("1g", 1, 100)))
        return Subject("singularity", root, settings, images, lacks={"limits": problem} if problem else {})

    found = shutil.which("apptainer") or shutil.which("singularity")
    return "" if found else "neither apptainer nor singularity is in PATH", make


def modal() -> Kind:
    """What stands between commands and the machine is Modal's own, of which the stand-in shows nothing."""

    def make(root: Path) -> Subject:
        if not shared.is_running():
            shared.running()
        lacks = dict.fromkeys(("limits", "isolation", "root"), "it is Modal's, and the stand-in has none of it")
        settings = {"sandbox": "modal", "sandbox_image": "one:1"}
        return Subject("modal", root, settings, ("one:1", "two:1"), mark="cat ~/image", lacks=lacks)

    return shared.problem(), make


SUBJECTS: dict[str, Callable[[], Kind]] = {
    "local-bwrap": lambda: local("bwrap"),
    "local-landlock": lambda: local("landlock"),
    "local-none": lambda: local("none"),
    "docker": docker,
    "podman": podman,
    "singularity": singularity,
    "modal": modal,
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
