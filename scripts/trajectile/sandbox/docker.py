"""A sandbox in a container of Docker, or of podman through Docker's API."""

import asyncio
from contextlib import suppress

from docker import APIClient

from trajectile.configuration.settings import Settings
from trajectile.errors import PromptError
from trajectile.sandbox.base import ExecResult, OutputBuffer, SandboxDied
from trajectile.sandbox.docker_container import Container
from trajectile.sandbox.docker_engine import Engine, EngineError
from trajectile.sandbox.docker_options import create_options
from trajectile.sandbox.docker_owner import remove
from trajectile.sandbox.guard import STATE
from trajectile.sandbox.images import Images, ImageUnavailable
from trajectile.sandbox.shell import ShellSandbox

ATTACH = "stream=1&stdin=1&stdout=1&stderr=1"


class DockerSandbox(ShellSandbox):
    """A container of `image` with the limits of `settings`, removed by `close` with its volumes.

    `cwd` is a folder in the container, made if need be, the image's own where it is empty. PromptError from `start`
    where the image cannot be had or the engine cannot start it, FatalError where there is no engine.
    """

    state_dir = STATE

    def __init__(
        self, engine: Engine, images: Images, settings: Settings, *, image: str, cwd: str, labels: dict[str, str]
    ) -> None:
        self.output_limit = settings.output_limit
        self.image = image
        self._engine, self._images, self._settings = engine, images, settings
        self._cwd, self._labels = cwd, labels
        self._making: asyncio.Future[str] | None = None
        self._container: Container | None = None

    async def start(self) -> None:
        found = await self._images.ensure(self.image, lambda _: None)
        self.image_digest = found.digest
        try:
            self._making = asyncio.ensure_future(self._create(found.name))
            container = await asyncio.shield(self._making)
            stream = await self._engine.stream(f"/containers/{container}/attach?{ATTACH}")
            self._container = Container(self._engine, container, stream, self._cwd)
            await self._engine.call(lambda client: client.start(container))
        except EngineError as error:
            raise PromptError("sandbox_start", f"the container of {self.image} did not start: {error}") from error
        await self._container.started()
        self.shell = self._container.shell

    async def _create(self, image: str) -> str:
        def create(client: APIClient) -> str:
            options = create_options(client, self._settings, image, self._cwd, self._labels)
            return str(client.create_container_from_config(options)["Id"])  # type: ignore[no-untyped-call]

        try:
            return await self._engine.call(create)
        except EngineError as error:
            if error.missing and "image" in str(error).lower():
                raise ImageUnavailable(self.image, str(error)) from error
            raise

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
        making, self._making = self._making, None
        if self._container is not None:
            await self._container.close()
        if making is not None:
            with suppress(EngineError, PromptError):
                container = await making
                await self._engine.run(lambda: remove(self._engine, container))
