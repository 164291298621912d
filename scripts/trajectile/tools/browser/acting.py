"""The way of every browser call: a time limit, an answer that says where the browser is, and mended failures."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from trajectile.tools.browser.session import Session
from trajectile.tools.browser.shortening import shorten
from trajectile.tools.fitting import fitted
from trajectile.tools.tool import ToolContext

if TYPE_CHECKING:
    from playwright.async_api import Error, Locator, Page

Result = dict[str, Any]
Work = Callable[[Session, "Page"], Awaitable[Result]]

LATE = re.compile(r"Timeout (\d+)ms exceeded\.?")
NO_FRAME = "Invalid frame"
CAUSE = re.compile(r"intercepts pointer events|is not (?:visible|enabled|stable|editable)|outside of the viewport")
ERROR_PAGE = "chrome-error:"
SHOWABLE = ("http:", "https:", "about:", "data:", "blob:", ERROR_PAGE)


async def act(context: ToolContext, work: Work) -> str:
    """Do `work` on the tab in front; the result is JSON with what it returns, `url`, `title` and `notes`."""
    from playwright.async_api import Error

    session = context.own.get(Session, context)
    await session.ready()
    try:
        async with asyncio.timeout(session.limit_s):
            result = {"success": True, **await work(session, await session.page())}
            await session.downloads.wait()
            result |= await _where(session)
    except TimeoutError:
        result = {"error": _joined(f"no end within {session.limit_s:g} s", await session.revive())}
    except Error as problem:
        result = {"error": _joined(explained(problem), await session.revive())}
    except ValueError as problem:
        result = {"error": str(problem)}
    except (TypeError, LookupError, RecursionError):
        result = {"error": "the page answers what makes no sense: its scripts changed what the browser offers them"}
    return answer(session, result, context.settings.output_limit)


def answer(session: Session, result: Result, limit_bytes: int) -> str:
    """A result with the notes since the last one, within the size limit."""
    notes = session.events.take_notes()
    whole = result | ({"notes": notes} if notes else {})
    return fitted(lambda share: {name: shorten(value, share) for name, value in whole.items()}, limit_bytes)


async def _where(session: Session) -> Result:
    page = await session.page()
    if not page.url.startswith(SHOWABLE):
        await session.drop()
        raise ValueError("pages of the browser itself and files of its machine are not shown")
    if page.url.startswith(ERROR_PAGE):
        session.events.note(session.unreachable() or "the page could not be opened")
    return {"url": page.url, "title": await page.title()}


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def explained(problem: "Error") -> str:
    """What Playwright says, in a line: less its call log, but with the reason it holds."""
    first, *log = problem.message.splitlines() or ["the browser gave no reason"]
    first = re.sub(r"^(?:Page|Locator|Keyboard|Mouse|Frame)\.\w+: ", "", first)
    causes = [line.strip(" -") for line in log if CAUSE.search(line)]
    first = LATE.sub(lambda late: f"not done within {int(late[1]) / 1000:g} s", first)
    return f"{first}: {causes[-1]}" if causes else first


async def element(session: Session, page: "Page", name: str) -> "Locator":
    """The element of a name; ValueError where it is none, or not of this page as it is now."""
    from playwright.async_api import Error

    locator = page.locator(f"aria-ref={session.references.find(page, name)}")
    try:
        there = await locator.count()
    except Error as problem:
        if NO_FRAME not in problem.message:
            raise
        there = 0
    if not there:
        raise ValueError(f"{name} is not on this page now; take a new browser_snapshot")
    return locator
