"""Tool `browser_snapshot`."""

from typing import TYPE_CHECKING

from trajectile.tools.browser.acting import Result, act
from trajectile.tools.browser.finding import requirement
from trajectile.tools.browser.session import Session
from trajectile.tools.browser.snapshots import snapshot
from trajectile.tools.tool import Arguments, Tool, ToolContext, parameters

if TYPE_CHECKING:
    from playwright.async_api import Page


async def browser_snapshot(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with url, title and the accessibility tree, an element a line."""

    async def look(session: Session, page: "Page") -> Result:
        return {"snapshot": await snapshot(session, page, full=bool(arguments.get("full")))}

    return await act(context, look)


TOOL = Tool(
    "browser_snapshot",
    "browser",
    "Show the current page as text. Elements have references such as @e5, for browser_click and browser_type.",
    parameters([], full={"type": "boolean", "description": "all text, not only what can be used and headings"}),
    browser_snapshot,
    requirement,
)
