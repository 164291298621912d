"""What happens in a prompt's browser between and during calls: dialogs, console, requests, and notes for the model."""

import asyncio
import time
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ConsoleMessage, Dialog, Request, WebError

NOTES_MAX = 20
MESSAGES_MAX = 200
TEXT_CHARACTERS = 500
QUIET_S, SETTLE_S, POLL_S, FORGOTTEN_S = 0.2, 2.0, 0.05, 5.0
ENDLESS = frozenset({"websocket", "eventsource", "media", "ping"})


class Events:
    """Notes are told with the next result; console messages are kept; `failed_url` is the last document that failed."""

    def __init__(self) -> None:
        self.console: deque[dict[str, str]] = deque(maxlen=MESSAGES_MAX)
        self.failed_url = ""
        self._notes: Counter[str] = Counter()
        self._requests: dict[Request, float] = {}

    def attach(self, context: "BrowserContext") -> None:
        """Listen to all pages of a context, and forget what was under way in another."""
        self._requests.clear()
        context.on("dialog", self._answer)
        context.on("console", self._keep_message)
        context.on("weberror", self._keep_error)
        context.on("request", self._begin)
        context.on("requestfinished", self._finish)
        context.on("requestfailed", self._fail)

    def note(self, text: str) -> None:
        if text in self._notes or len(self._notes) < NOTES_MAX:
            self._notes[text] += 1

    def take_notes(self) -> list[str]:
        taken, self._notes = self._notes, Counter()
        return [f"{text} ({times} times)" if times > 1 else text for text, times in taken.items()]

    async def settle(self) -> None:
        """Wait until no young request was under way for a moment, or for SETTLE_S."""
        quiet = start = time.monotonic()
        while (now := time.monotonic()) - start < SETTLE_S and now - quiet < QUIET_S:
            await asyncio.sleep(POLL_S)
            quiet = now if any(now - begun < FORGOTTEN_S for begun in self._requests.values()) else quiet

    async def _answer(self, dialog: "Dialog") -> None:
        """Accept every dialog, for a page waits while one is open."""
        from playwright.async_api import Error

        default = f" with {shortened(dialog.default_value)!r}" if dialog.type == "prompt" else ""
        self.note(f"the page showed a dialog ({dialog.type}), accepted{default}: {shortened(dialog.message)}")
        with suppress(Error):
            await dialog.accept(dialog.default_value)

    def _keep_message(self, message: "ConsoleMessage") -> None:
        where = message.location
        at = f"{where['url']}:{where['lineNumber']}" if where.get("url") else ""
        self.console.append({"type": message.type, "text": shortened(message.text), "at": shortened(at)})

    def _keep_error(self, error: "WebError") -> None:
        page = error.page
        text = str(error.error)
        self.console.append({"type": "exception", "text": shortened(text), "at": shortened(page.url if page else "")})

    def _begin(self, request: "Request") -> None:
        if request.resource_type not in ENDLESS:
            self._requests[request] = time.monotonic()

    def _finish(self, request: "Request") -> None:
        self._requests.pop(request, None)

    def _fail(self, request: "Request") -> None:
        self._finish(request)
        if request.is_navigation_request():
            self.failed_url = request.url


def shortened(text: str) -> str:
    return text if len(text) <= TEXT_CHARACTERS else f"{text[:TEXT_CHARACTERS]}…"
