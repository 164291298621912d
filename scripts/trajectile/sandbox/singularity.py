"""A sandbox in an apptainer or singularity container, which lives as long as the prompt and no longer."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from trajectile.sandbox import apptainer, container, scratch
from trajectile.sandbox.apptainer import Limits, Options
from trajectile.sandbox.base import ExecResult, OutputBuffer, SandboxDied
from trajectile.sandbox.container import Container
from trajectile.sandbox.container_keeper import STATE
from trajectile.sandbox.images import Images
from trajectile.sandbox.shell import ShellSandbox


class SingularitySandbox(ShellSandbox):
    """A container of `image`, what it writes in a new folder under `scratch_parent`.

    `image` is the path of a SIF file or of an image folder, or with `images` what these make one of. `cwd` is a folder
    in the container, made if need be, the home folder where it is empty. `memory` as in `4g`, `mounts` as in
    `/here:/there:ro`. `start` raises FatalError without an engine, PromptError with the engine's message where the
    image cannot be had or the container cannot start.
    """

    state_dir = STATE

    def __init__(
        self,
        scratch_parent: Path,
        image: str,
        *,
        cwd: str = "",
        output_limit: int,
        network: str = "none",
        memory: str | None = None,
        cpus: float | None = None,
        pids: int | None = None,
        mounts: Iterable[str] = (),
        read_only: bool = False,
        images: Images | None = None,
    ) -> None:
        self.output_limit = output_limit
        self.image = image
        self._parent, self._cwd, self._images = scratch_parent, cwd, images
        self._options = Options(network, Limits(memory, cpus, pids), tuple(mounts), read_only)
        self._folder: Path | None = None
        self._container: Container | None = None

    async def start(self) -> None:
        path = self.image
        if self._images is not None:
            path, self.image_digest = await self._images.ensure(self.image, lambda _: None)
        self._folder = scratch.unused(self._parent)
        self._folder.mkdir(parents=True)
        launch = apptainer.launch(path, self._folder, self._cwd, self._options)
        self._container = Container(launch, apptainer.environment(), self._folder)
        await self._container.started()
        self.shell = self._container.shell

    async def run_script(
        self,
        script: str,
        *,
        timeout_s: float | None,
        output: OutputBuffer,
        stdin: "asyncio.Queue[bytes | None] | None",
    ) -> ExecResult:
        if self._container is None:
            raise SandboxDied("the sandbox is not started, or closed")
        return await self._container.run(script, timeout_s=timeout_s, output=output, stdin=stdin)

    async def close(self) -> None:
        folder, self._folder = self._folder, None
        if self._container is not None:
            await self._container.close()
        if folder is not None:
            await asyncio.to_thread(scratch.remove, folder)


def reap(parent: Path) -> int:
    """End the containers of `parent` whose owner ran on this host and is dead, and remove their folders; how many."""
    folders = scratch.dead(parent)
    for folder in folders:
        container.end_left(folder)
        scratch.remove(folder)
    return len(folders)
