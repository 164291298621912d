"""Tool `browser_vision`."""

from typing import TYPE_CHECKING

import orjson

from trajectile.configuration.settings import Settings
from trajectile.tools import models, roles
from trajectile.tools.browser.acting import Result, act
from trajectile.tools.browser.finding import requirement as lacks_browser
from trajectile.tools.browser.labels import labelled
from trajectile.tools.browser.session import Session
from trajectile.tools.browser.shortening import shorten
from trajectile.tools.fitting import fitted
from trajectile.tools.saving import FileNames, save
from trajectile.tools.tool import Arguments, Tool, ToolContext, is_failure, parameters

if TYPE_CHECKING:
    from playwright.async_api import Page


async def browser_vision(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with url, title, what the vision model says, and where in the sandbox the screenshot is."""
    taken: list[bytes] = []

    async def take(session: Session, page: "Page") -> Result:
        async with labelled(session, page, bool(arguments.get("annotate"))):
            taken.append(await page.screenshot())
        return {}

    result = await act(context, take)
    if is_failure(result):
        return result
    path = context.own.get(FileNames).next("screenshot", ".png")
    await save(context.sandbox, path, taken[0])
    seen = orjson.loads(result) | await _seen(context, taken[0], arguments["question"])
    return fitted(
        lambda share: {name: shorten(value, share) for name, value in seen.items()} | {"screenshot_path": path},
        context.settings.output_limit,
    )


async def _seen(context: ToolContext, image: bytes, question: str) -> Result:
    """A failure does not pass from here: what happened on the page is told with it, for it is told once."""
    try:
        return {"analysis": await models.look(context, image, question)}
    except ValueError as problem:
        return {"success": False, "error": str(problem)}


def requirement(settings: Settings) -> str:
    """What the tool lacks here, "" where nothing."""
    return lacks_browser(settings) or roles.lacks(settings, "vision", "look at images")


TOOL = Tool(
    "browser_vision",
    "browser",
    "Ask a question about how the current page looks; a vision model answers from a screenshot.",
    parameters(
        ["question"],
        question={"type": "string"},
        annotate={"type": "boolean", "description": "mark elements with their references in the screenshot"},
    ),
    browser_vision,
    requirement,
)
