"""Tool `browser_press`."""

from typing import TYPE_CHECKING

from trajectile.tools.browser.acting import Result, act
from trajectile.tools.browser.finding import requirement
from trajectile.tools.browser.session import Session
from trajectile.tools.tool import Arguments, Tool, ToolContext, parameters

if TYPE_CHECKING:
    from playwright.async_api import Page


async def browser_press(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with url and title after the key."""

    async def press(session: Session, page: "Page") -> Result:
        await page.keyboard.press(arguments["key"])
        await session.events.settle()
        return {"pressed": arguments["key"]}

    return await act(context, press)


TOOL = Tool(
    "browser_press",
    "browser",
    "Press a key on the current page, where the cursor is.",
    parameters(["key"], key={"type": "string", "description": "such as Enter, Tab, Escape, ArrowDown, Control+a"}),
    browser_press,
    requirement,
)
