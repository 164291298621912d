"""A sandbox in a container of Docker, or of podman through Docker's API."""

from docker import APIClient

from trajectile.configuration.settings import Settings
from trajectile.errors import PromptError
from trajectile.sandbox.container import ContainerSandbox
from trajectile.sandbox.docker.container import Container
from trajectile.sandbox.docker.engine import Engine, EngineError
from trajectile.sandbox.docker.leftovers import remove
from trajectile.sandbox.docker.options import create_options
from trajectile.sandbox.images import Images, ImageUnavailable

ATTACH = "stream=1&stdin=1&stdout=1&stderr=1"


class DockerSandbox(ContainerSandbox[str]):
    """A container of `image` with the limits of `settings`, removed by `close` with its volumes.

    `cwd` is a folder in the container, made if need be, the image's own where it is empty. PromptError from `start`
    where the image cannot be had or the engine cannot start it, FatalError where there is no engine.
    """

    def __init__(
        self, engine: Engine, images: Images, settings: Settings, *, image: str, cwd: str, labels: dict[str, str]
    ) -> None:
        self.output_limit = settings.output_limit
        self.image = image
        self._engine, self._images, self._settings = engine, images, settings
        self._cwd, self._labels = cwd, labels

    async def start(self) -> None:
        self._found = await self._images.ensure(self.image, lambda _: None)
        self.image_digest = self._found.digest
        try:
            await super().start()
        except EngineError as error:
            raise PromptError("sandbox_start", f"the container of {self.image} did not start: {error}") from error

    async def _make(self) -> str:
        def create(client: APIClient) -> str:
            options = create_options(client, self._settings, self._found.name, self._cwd, self._labels)
            return str(client.create_container_from_config(options)["Id"])  # type: ignore[no-untyped-call]

        try:
            return await self._engine.call(create)
        except EngineError as error:
            if error.missing and "image" in str(error).lower():
                raise ImageUnavailable(self.image, str(error)) from error
            raise

    async def _enter(self, made: str) -> Container:
        stream = await self._engine.stream(f"/containers/{made}/attach?{ATTACH}")
        return Container(self._engine, made, stream, self._cwd)

    async def _remove(self, made: str) -> None:
        await self._engine.run(lambda: remove(self._engine, made))
