"""Tool `browser_type`."""

from typing import TYPE_CHECKING

from trajectile.tools.browser.acting import Result, act, element
from trajectile.tools.browser.finding import requirement
from trajectile.tools.browser.session import Session
from trajectile.tools.tool import Arguments, Tool, ToolContext, parameters

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

OPTIONS = "field => field.tagName === 'SELECT' ? Array.from(field.options, option => option.label.trim()) : null"


async def browser_type(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with url and title; the field then holds the text and nothing else."""

    async def write(session: Session, page: "Page") -> Result:
        await _fill(await element(session, page, arguments["ref"]), arguments["text"], session.action_s)
        await session.events.settle()
        return {"typed": arguments["text"], "element": arguments["ref"]}

    return await act(context, write)


async def _fill(field: "Locator", text: str, limit_s: float) -> None:
    options = await field.evaluate(OPTIONS)
    if options is None:
        await field.fill(text, timeout=limit_s * 1000)
    elif text.strip() in options:
        await field.select_option(index=options.index(text.strip()), timeout=limit_s * 1000)
    else:
        raise ValueError(f"there is no option {text[:50]!r}; the options are {', '.join(options)[:500]}")


TOOL = Tool(
    "browser_type",
    "browser",
    "Put text into a field of the current page in place of what it holds, or choose an option of a list by its text.",
    parameters(
        ["ref", "text"],
        ref={"type": "string", "description": "reference of a snapshot, such as @e5"},
        text={"type": "string"},
    ),
    browser_type,
    requirement,
)
