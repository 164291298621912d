"""Tool `browser_navigate`."""

import asyncio
from contextlib import suppress
from socket import gaierror
from typing import TYPE_CHECKING
from urllib.parse import SplitResult

from trajectile.tools.addresses import checked_url, resolve
from trajectile.tools.browser.acting import ERROR_PAGE, Result, act, explained
from trajectile.tools.browser.finding import requirement
from trajectile.tools.browser.session import Session
from trajectile.tools.browser.snapshots import snapshot
from trajectile.tools.tool import Arguments, Tool, ToolContext, parameters

if TYPE_CHECKING:
    from playwright.async_api import Page, Response

LOAD_SHARE = 0.7
FIRST_ERROR_STATUS = 400
NETWORK, ABORTED, DOWNLOAD = "net::", "net::ERR_ABORTED", "Download is starting"
SUPERSEDED = "interrupted by another navigation"


async def browser_navigate(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with url, title, a snapshot as browser_snapshot gives it, and status where it is an error's."""
    text = arguments["url"].strip()
    parts = checked_url(text if "://" in text else f"https://{text}")
    if context.settings.browser_cdp_url:
        await _refuse_private(context, parts)
    url = parts.geturl()

    async def open_url(session: Session, page: "Page") -> Result:
        response = await _go(session, page, url)
        status = {"status": response.status} if response and response.status >= FIRST_ERROR_STATUS else {}
        return {**status, "snapshot": await snapshot(session, await session.page(), full=False)}

    return await act(context, open_url)


async def _refuse_private(context: ToolContext, parts: SplitResult) -> None:
    """AddressRefused for what is no public host as seen from here: a browser elsewhere does its own connecting."""
    with suppress(gaierror):
        await resolve(parts.hostname or "", parts.port or 80, allow_private=context.settings.web_allow_private)


async def _go(session: Session, page: "Page", url: str) -> "Response | None":
    """Open a URL and wait until its document is read, or part of the time is over."""
    from playwright.async_api import Error, TimeoutError

    limit_s = session.limit_s * LOAD_SHARE
    end = asyncio.get_running_loop().time() + limit_s
    response = None
    try:
        response = await _commit(session, page, url, limit_s)
        left_s = max(end - asyncio.get_running_loop().time(), 0.001)  # 0 would be no limit
        await page.wait_for_load_state("domcontentloaded", timeout=left_s * 1000)
        await session.events.settle()
    except TimeoutError:
        await session.stop_loading()
        if response is None:
            raise ValueError(f"{url[:200]} gave no answer within {limit_s:g} s") from None
        session.events.note(f"still loading after {limit_s:g} s; this is what is there")
    except Error as problem:
        if NETWORK in problem.message:
            raise ValueError(session.unreachable() or explained(problem)) from None
        if SUPERSEDED not in problem.message and DOWNLOAD not in problem.message:
            raise
        await session.events.settle()
    return response


async def _commit(session: Session, page: "Page", url: str, limit_s: float) -> "Response | None":
    from playwright.async_api import Error

    try:
        return await page.goto(url, wait_until="commit", timeout=limit_s * 1000)
    except Error as problem:
        # the error page of a failure before comes late, and ends what has begun since; a busy browser aborts sometimes
        late = SUPERSEDED in problem.message and ERROR_PAGE in problem.message
        if not late and (ABORTED not in problem.message or session.downloads.under_way):
            raise
        return await page.goto(url, wait_until="commit", timeout=limit_s * 1000)


TOOL = Tool(
    "browser_navigate",
    "browser",
    "Open a URL in the browser. Gives a snapshot of the page, as browser_snapshot does.",
    parameters(["url"], url={"type": "string", "description": "http or https"}),
    browser_navigate,
    requirement,
)
