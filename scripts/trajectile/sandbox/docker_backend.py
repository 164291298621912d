"""Docker containers as a run's sandboxes."""

from contextlib import suppress

from trajectile.configuration.settings import Settings
from trajectile.errors import FatalError
from trajectile.rows import PromptRow
from trajectile.run_folder.paths import RunFolder
from trajectile.run_folder.stop import invocation
from trajectile.sandbox.backend import Backend
from trajectile.sandbox.docker import DockerSandbox
from trajectile.sandbox.docker_engine import Engine, EngineError
from trajectile.sandbox.docker_images import DockerImages
from trajectile.sandbox.docker_owner import labels, reap_containers
from trajectile.sandbox.images import Images
from trajectile.sandbox.reach import binds, network_mode


class DockerBackend(Backend):
    """Containers of the engine that DOCKER_HOST names."""

    def __init__(self, settings: Settings, folder: RunFolder) -> None:
        binds(settings.sandbox_mounts)
        self._settings, self._folder = settings, folder
        self._run = str(folder.root.absolute())
        self._engine = Engine()
        self._images = Images(DockerImages(self._engine), settings.image_pull, invocation(folder))

    def describe(self) -> str:
        settings = self._settings
        network = network_mode(settings.sandbox_network)
        reach = "no network" if network == "none" else f"network {network}"
        limits = (
            f"{settings.sandbox_memory} of memory, {settings.sandbox_cpus:g} CPU, {settings.sandbox_pids} processes"
        )
        return f"Commands run in a container of their own for each prompt: {reach}, {limits}."

    def check(self) -> None:
        network = network_mode(self._settings.sandbox_network)
        try:
            self._engine.ask(lambda client: client.inspect_network(network) if network != "none" else client.ping())
        except EngineError as error:
            raise FatalError(f"sandbox_network: {network}: {error}") from error

    def reap(self) -> int:
        """Without an engine there is nothing to reap: what cannot do without says so."""
        with suppress(FatalError):
            return reap_containers(self._engine, self._run)
        return 0

    def images(self) -> DockerImages:
        return DockerImages(self._engine)

    def image_of(self, row: PromptRow) -> str:
        return row.image or self._settings.sandbox_image

    def open(self, row: PromptRow) -> DockerSandbox:
        return DockerSandbox(
            self._engine,
            self._images,
            self._settings,
            image=self.image_of(row),
            cwd=row.cwd,
            labels=labels(self._run, row),
        )

    def close(self) -> None:
        self._engine.close()
