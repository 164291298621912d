"""What a kind of sandbox is asked besides running commands."""

from abc import ABC, abstractmethod

from trajectile.configuration.settings import Settings
from trajectile.rows import PromptRow
from trajectile.run_folder.paths import RunFolder
from trajectile.sandbox.base import Sandbox
from trajectile.sandbox.images import Images
from trajectile.sandbox.limits import limits_of
from trajectile.sandbox.reach import binds, network_mode


class Backend(ABC):
    """How the sandboxes of one run are made on this machine. Making a backend asks nothing of an engine."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @abstractmethod
    def describe(self) -> str:
        """Return a sentence for the start report: what stands between commands and this machine."""

    @abstractmethod
    def check(self) -> None:
        """Raise FatalError where no sandbox can be had on this machine as the settings ask."""

    @abstractmethod
    def reap(self) -> int:
        """Remove what dead owners on this machine left of the run; return how many sandboxes that were."""

    @abstractmethod
    def open(self, row: PromptRow) -> Sandbox:
        """Return a prompt's own sandbox, not started."""

    def images(self) -> Images | None:
        """Return what sees to the images on this machine, None where sandboxes have none."""
        return None

    def image_of(self, row: PromptRow) -> str:
        """Return the image that a prompt runs in, "" for none."""
        return ""

    def close(self) -> None:  # noqa: B027 (most have nothing)
        """Give back what was opened to make sandboxes."""


class ContainerBackend(Backend):
    """Each prompt runs in a container of the image that its row names."""

    def __init__(self, settings: Settings, folder: RunFolder) -> None:
        super().__init__(settings)
        self.run = str(folder.root.absolute())
        self.network = network_mode(settings.sandbox_network)
        self.mounts = tuple(binds(settings.sandbox_mounts))

    @property
    @abstractmethod
    def kind(self) -> str:
        """What a prompt gets, with its article."""

    def describe(self) -> str:
        reach = "no network" if self.network == "none" else f"network {self.network}"
        return f"Commands run in {self.kind} of their own for each prompt: {reach}, {self.held_to()}."

    def held_to(self) -> str:
        """Say which limits hold."""
        return str(limits_of(self.settings))

    def image_of(self, row: PromptRow) -> str:
        return row.image or self.settings.sandbox_image
