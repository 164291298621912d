"""A prompt's own part of the browser: an isolated context, its tabs, and what happened in them."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from trajectile.tools.browser.downloads import Downloads
from trajectile.tools.browser.events import Events
from trajectile.tools.browser.references import References
from trajectile.tools.browser.shared_browser import SharedBrowser
from trajectile.tools.tool import ToolContext

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page

TABS_MAX = 8
PROBE_S, PROBE_SHARE, BROWSER_PROBE_S = 10.0, 0.3, 30.0
CLOSE_S = 10.0
ACTION_S, ACTION_SHARE, DEFAULT_SHARE = 10.0, 0.5, 0.9


class Session:
    """Opened at the first call; `drop` gives up a context that is of no more use, the next call opens another.

    `tabs` are the open ones, the last in front.
    """

    def __init__(self, context: ToolContext) -> None:
        self.shared = context.shared.get(SharedBrowser, context.settings)
        self.events = Events()
        self.downloads = Downloads(context, self.events.note)
        self.limit_s = context.settings.browser_timeout
        self.action_s = min(ACTION_S, self.limit_s * ACTION_SHARE)
        self._probe_s = min(PROBE_S, self.limit_s * PROBE_SHARE)
        self.references = References()
        self.crashed = False
        self._context: BrowserContext | None = None
        self.tabs: list[Page] = []
        self._sessions: dict[Page, CDPSession] = {}
        self._arriving: set[asyncio.Task[None]] = set()
        self._has_place = False

    async def ready(self) -> None:
        """Wait for a place and open a context where there is none; the tool's time limit does not count this."""
        if not self._has_place:
            await self.shared.places.acquire()
            self._has_place = True
        if self._context is None:
            self.crashed = False
            self._context = await self.shared.open()
            self._context.set_default_timeout(self.limit_s * DEFAULT_SHARE * 1000)
            self.events.attach(self._context)
            self._context.on("page", self._arrive)

    async def page(self) -> "Page":
        """The tab in front, a new one where all are closed."""
        assert self._context is not None, "ready() comes first"
        if not self.tabs:
            await self._context.new_page()
        if self._arriving:
            await asyncio.wait(self._arriving, timeout=self._probe_s)
        if not self.tabs:
            raise ValueError("the last tab was closed; the next call begins with an empty one")
        return self.tabs[-1]

    def _arrive(self, page: "Page") -> None:
        page.on("crash", self._crash)
        page.on("close", self._leave)
        if len(self.tabs) >= TABS_MAX:
            self.events.note(f"a new tab was closed at once, for {TABS_MAX} are open")
            self._later(page.close())
            return
        if self.tabs:
            self.events.note("a new tab was opened and is in front now")
        self.tabs.append(page)
        self._later(self._equip(page))

    async def _equip(self, page: "Page") -> None:
        session = self._sessions[page] = await page.context.new_cdp_session(page)
        await self.downloads.attach(page, session)

    def _leave(self, page: "Page") -> None:
        self._sessions.pop(page, None)
        if page in self.tabs:
            self.tabs.remove(page)
            self.events.note("a tab was closed")

    def _crash(self, page: "Page") -> None:
        self.crashed = True

    def _later(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(self._quietly(work))
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    async def _quietly(self, work: Coroutine[Any, Any, Any]) -> None:
        with suppress(Exception):  # the tab, the browser or its driver is gone: the next call finds out
            await work

    async def revive(self) -> str:
        """After something went wrong: make the page answer again, or give it up; in words for the model."""
        if self.crashed:
            await self.drop()
            return "the page crashed, or took more memory than browser_memory; the next call begins with an empty one"
        if not await self._answers(self._probe_context(), BROWSER_PROBE_S):
            await self.drop()
            return "the browser died; the next call begins with a new one"
        if not self.tabs or await self._answers(self.tabs[-1].evaluate("1")):
            return ""
        page = self.tabs[-1]
        if session := self._sessions.get(page):
            self._later(session.send("Runtime.terminateExecution"))
        if await self._answers(page.evaluate("1")):
            return "the page did not respond, so its running script was ended"
        await self.drop()
        return "the page did not respond any more; the next call begins with an empty one"

    async def stop_loading(self) -> None:
        """End what the tab in front is waiting for; what has come of its document stays."""
        session = self._sessions.get(self.tabs[-1]) if self.tabs else None
        if session:
            await self._answers(session.send("Page.stopLoading"))

    def unreachable(self) -> str:
        """Why the last page could not be opened, "" where nothing is known."""
        url = self.events.failed_url
        reason = self.shared.problem(urlsplit(url).hostname or "") if url else ""
        return f"{url[:200]} cannot be opened: {reason}" if reason else ""

    async def _probe_context(self) -> None:
        if self._context:
            await self._context.cookies()

    async def _answers(self, question: Coroutine[Any, Any, Any], seconds: float = 0) -> bool:
        from playwright.async_api import Error

        try:
            async with asyncio.timeout(seconds or self._probe_s):
                await question
        except (Error, TimeoutError):
            return False
        return True

    async def drop(self) -> None:
        """Give the context up with all its tabs."""
        context, self._context = self._context, None
        self.tabs.clear()
        self._sessions.clear()
        if context:
            from playwright.async_api import Error

            with suppress(Error, TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await context.close()

    async def close(self) -> None:
        await self.downloads.close()
        await self.drop()
        if self._has_place:
            self._has_place = False
            self.shared.places.release()
