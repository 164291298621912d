"""Tool `browser_click`."""

from typing import TYPE_CHECKING

from trajectile.tools.browser.acting import Result, act, element
from trajectile.tools.browser.finding import requirement
from trajectile.tools.browser.session import Session
from trajectile.tools.tool import Arguments, Tool, ToolContext, parameters

if TYPE_CHECKING:
    from playwright.async_api import Page


async def browser_click(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with url and title after the click."""

    async def click(session: Session, page: "Page") -> Result:
        await (await element(session, page, arguments["ref"])).click(timeout=session.action_s * 1000)
        await session.events.settle()
        return {"clicked": arguments["ref"]}

    return await act(context, click)


TOOL = Tool(
    "browser_click",
    "browser",
    "Click an element of the current page.",
    parameters(["ref"], ref={"type": "string", "description": "reference of a snapshot, such as @e5"}),
    browser_click,
    requirement,
)
