"""What all sandboxes that are containers have in common: made, entered, removed, whatever happens meanwhile."""

import asyncio
from abc import abstractmethod
from typing import Any, Generic, TypeVar

from trajectile.sandbox.base import SandboxDied
from trajectile.sandbox.command import Runner
from trajectile.sandbox.guard import STATE
from trajectile.sandbox.shell import ShellSandbox

Made = TypeVar("Made")


class ContainerSandbox(ShellSandbox, Generic[Made]):
    """Backends say how a container is made, entered and removed; `close` removes also what a cancelled start made."""

    state_dir = STATE
    _making: "asyncio.Future[Made] | None" = None
    _container: Runner[Any] | None = None

    async def start(self) -> None:
        self._making = asyncio.ensure_future(self._make())
        self._container = await self._enter(await asyncio.shield(self._making))
        await self._container.started()
        self.shell = self._container.shell

    @abstractmethod
    async def _make(self) -> Made:
        """Make the container; once begun, this comes to its end."""

    @abstractmethod
    async def _enter(self, made: Made) -> Runner[Any]:
        """Return what runs commands in the container, about to start."""

    @abstractmethod
    async def _remove(self, made: Made) -> None:
        """Remove the container; never raises for one that is gone."""

    def runner(self) -> Runner[Any]:
        if self._container is None:
            raise SandboxDied("the sandbox is not started, or closed")
        return self._container

    async def close(self) -> None:
        making, self._making = self._making, None
        try:
            if self._container is not None:
                await self._container.close()
        finally:
            if making is not None:
                await asyncio.wait([making])
                if making.exception() is None:
                    await self._remove(making.result())
