"""A process at a distance."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator


class ProcessStream(ABC):
    """What a process prints, and what it reads."""

    @abstractmethod
    def parts(self) -> AsyncIterator[bytes]:
        """Yield what the process prints, up to its end or that of the connection."""

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Hand bytes to the process, as fast as it takes them; ConnectionError where it is gone."""

    @abstractmethod
    def end_input(self) -> None:
        """Let the process find the end of its input."""

    @abstractmethod
    def close(self) -> None: ...
