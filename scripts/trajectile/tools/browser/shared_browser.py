"""The browser of a process: started at the first call, started again when it died, a context for each prompt."""

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from trajectile.configuration.settings import Settings
from trajectile.errors import PromptError
from trajectile.tools.browser.running import Running, start

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

CONTEXT_TIMEOUT_S = 15.0
VIEWPORT = (1280, 720)
log = logging.getLogger(__name__)


class SharedBrowser:
    """`places` bounds the prompts that have a context at once; `open` gives one, `problem` tells why a host failed."""

    def __init__(self, settings: Settings) -> None:
        self.places = asyncio.Semaphore(settings.browser_contexts)
        self._settings = settings
        self._starting: asyncio.Task[Running] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def open(self) -> "BrowserContext":
        """A new isolated context, of a new browser where the present one is dead. PromptError where there is none."""
        from playwright.async_api import Error

        for _ in range(2):
            starting = self._current()
            # not cancelled with the prompt that happened to be first
            running = await asyncio.shield(starting)
            try:
                async with asyncio.timeout(CONTEXT_TIMEOUT_S):
                    return await running.browser.new_context(viewport={"width": VIEWPORT[0], "height": VIEWPORT[1]})
            except (Error, TimeoutError):
                self._give_up(starting)
        raise PromptError("browser_start", "the browser dies as soon as it is started")

    def problem(self, host: str) -> str:
        """Why a host could not be reached, "" where nothing is known."""
        if self._starting and self._starting.done() and not self._starting.exception():
            gate = self._starting.result().gate
            return gate.problems.get(host.lower(), "") if gate else ""
        return ""

    def _current(self) -> "asyncio.Task[Running]":
        failed = self._starting and self._starting.done() and self._starting.exception()
        if self._starting is None or failed:
            self._starting = asyncio.create_task(start(self._settings))
        return self._starting

    def _give_up(self, dead: "asyncio.Task[Running]") -> None:
        if self._starting is dead:
            self._starting = None
            log.warning("the browser died; a new one is started")
            task = asyncio.create_task(dead.result().close())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End the browser and all that belongs to it."""
        await asyncio.gather(*self._ending)
        if self._starting:
            with contextlib.suppress(PromptError):
                await (await self._starting).close()
