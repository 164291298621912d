"""Tool `browser_scroll`."""

from typing import TYPE_CHECKING

from trajectile.tools.browser.acting import Result, act
from trajectile.tools.browser.finding import requirement
from trajectile.tools.browser.session import Session
from trajectile.tools.browser.shared_browser import VIEWPORT
from trajectile.tools.tool import Arguments, Tool, ToolContext, parameters

if TYPE_CHECKING:
    from playwright.async_api import Page

STEP = VIEWPORT[1] * 0.8
POSITION = """() => {
  const page = document.scrollingElement || document.documentElement;
  return [page.scrollTop, page.clientHeight, page.scrollHeight].map(Math.round);
}"""


async def browser_scroll(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with url, title and which pixels of the page's height are in view."""
    step = STEP if arguments["direction"] == "down" else -STEP

    async def scroll(session: Session, page: "Page") -> Result:
        # by the wheel, so that a list under the middle of the page scrolls as it would for a person
        await page.mouse.move(VIEWPORT[0] / 2, VIEWPORT[1] / 2)
        await page.mouse.wheel(0, step)
        await session.events.settle()
        top, seen, height = await page.evaluate(POSITION)
        return {"in_view": f"{top}-{top + seen} of {height} pixels"}

    return await act(context, scroll)


TOOL = Tool(
    "browser_scroll",
    "browser",
    "Scroll the current page by most of its visible height.",
    parameters(["direction"], direction={"type": "string", "enum": ["up", "down"]}),
    browser_scroll,
    requirement,
)
