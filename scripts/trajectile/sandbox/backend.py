"""What a kind of sandbox is asked besides running commands."""

from abc import ABC, abstractmethod

from trajectile.rows import PromptRow
from trajectile.sandbox.base import Sandbox
from trajectile.sandbox.images import ImageStore


class Backend(ABC):
    """How the sandboxes of one run are made on this machine. Making one asks nothing of an engine."""

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

    def images(self) -> ImageStore | None:
        """Return where this machine keeps its images, None where sandboxes have none."""
        return None

    def image_of(self, row: PromptRow) -> str:
        """Return the image that a prompt runs in, "" for none."""
        return ""

    def close(self) -> None:  # noqa: B027 (most have nothing)
        """Give back what was opened to make sandboxes."""
