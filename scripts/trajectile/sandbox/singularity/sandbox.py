"""A sandbox in an apptainer or singularity container, which lives as long as the prompt and no longer."""

import asyncio
from pathlib import Path

from trajectile.sandbox import scratch
from trajectile.sandbox.container import ContainerSandbox
from trajectile.sandbox.images import Images
from trajectile.sandbox.singularity import apptainer
from trajectile.sandbox.singularity.apptainer import Options
from trajectile.sandbox.singularity.container import Container


class SingularitySandbox(ContainerSandbox[Path]):
    """A container of `image`, what it writes in a new folder under `scratch_parent`.

    `image` is the path of a SIF file or of an image folder, or with `images` what these make one of. `cwd` is a folder
    in the container, made if need be, the home folder where it is empty. `start` raises FatalError without an engine,
    PromptError with the engine's message where the image cannot be had or the container cannot start.
    """

    def __init__(
        self,
        scratch_parent: Path,
        image: str,
        *,
        cwd: str = "",
        output_limit: int,
        options: Options,
        images: Images | None = None,
    ) -> None:
        self.output_limit = output_limit
        self.image = image
        self._parent, self._cwd, self._options, self._images = scratch_parent, cwd, options, images

    async def start(self) -> None:
        self._path = self.image
        if self._images is not None:
            self._path, self.image_digest = await self._images.ensure(self.image, lambda _: None)
        await super().start()

    async def _make(self) -> Path:
        folder = scratch.unused(self._parent)
        folder.mkdir(parents=True)
        return folder

    async def _enter(self, made: Path) -> Container:
        launch = apptainer.launch(self._path, made, self._cwd, self._options)
        return Container(launch, apptainer.environment(), made)

    async def _remove(self, made: Path) -> None:
        await asyncio.to_thread(scratch.remove, made)
