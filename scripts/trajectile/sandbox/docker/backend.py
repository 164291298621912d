"""Docker containers as a run's sandboxes."""

from contextlib import suppress

from trajectile.configuration.settings import Settings
from trajectile.errors import FatalError
from trajectile.rows import PromptRow
from trajectile.run_folder.paths import RunFolder
from trajectile.run_folder.stop import invocation
from trajectile.sandbox.backend import ContainerBackend
from trajectile.sandbox.docker.engine import Engine, EngineError
from trajectile.sandbox.docker.images import DockerImages
from trajectile.sandbox.docker.leftovers import labels, reap_containers
from trajectile.sandbox.docker.sandbox import DockerSandbox
from trajectile.sandbox.images import Images


class DockerBackend(ContainerBackend):
    """Containers of the engine that DOCKER_HOST names."""

    kind = "a container"

    def __init__(self, settings: Settings, folder: RunFolder) -> None:
        super().__init__(settings, folder)
        self._engine = Engine()
        self._images = Images(DockerImages(self._engine), settings.image_pull, invocation(folder))

    def check(self) -> None:
        network = self.network
        try:
            self._engine.ask(lambda client: client.inspect_network(network) if network != "none" else client.ping())
        except EngineError as error:
            raise FatalError(f"sandbox_network: {network}: {error}") from error

    def reap(self) -> int:
        """Without an engine, or where it refuses, nothing is reaped: what cannot do without it says so."""
        with suppress(FatalError, EngineError):
            return reap_containers(self._engine, self.run)
        return 0

    def images(self) -> Images:
        return self._images

    def open(self, row: PromptRow) -> DockerSandbox:
        return DockerSandbox(
            self._engine,
            self._images,
            self.settings,
            image=self.image_of(row),
            cwd=row.cwd,
            labels=labels(self.run, row),
        )

    def close(self) -> None:
        self._engine.close()
