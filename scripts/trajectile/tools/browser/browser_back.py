"""Tool `browser_back`."""

from typing import TYPE_CHECKING

from trajectile.tools.browser.acting import Result, act
from trajectile.tools.browser.finding import requirement
from trajectile.tools.browser.session import Session
from trajectile.tools.tool import Arguments, Tool, ToolContext, parameters

if TYPE_CHECKING:
    from playwright.async_api import Page


async def browser_back(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with url and title of the page before."""

    async def back(session: Session, page: "Page") -> Result:
        before = page.url
        await page.go_back(wait_until="commit")
        if page.url == before:
            raise ValueError("there is no page to go back to")
        await session.events.settle()
        return {}

    return await act(context, back)


TOOL = Tool("browser_back", "browser", "Go back to the page before.", parameters([]), browser_back, requirement)
