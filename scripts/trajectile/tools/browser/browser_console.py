"""Tool `browser_console`."""

from typing import TYPE_CHECKING

from trajectile.tools.browser.acting import Result, act
from trajectile.tools.browser.finding import requirement
from trajectile.tools.browser.session import Session
from trajectile.tools.tool import Arguments, Tool, ToolContext, parameters

if TYPE_CHECKING:
    from playwright.async_api import Page

AS_TEXT = """(value, limit) => {
  let text;
  try { text = JSON.stringify(value); } catch { /* a cycle */ }
  text = String(text === undefined || value instanceof Node ? value : text);
  return text.length > limit ? `${text.slice(0, limit)}… ${text.length - limit} more` : text;
}"""
NEEDS_ASYNC = "await is only valid"


async def browser_console(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with url, title, the console's messages, and with `expression` its value, as JSON if it can be."""

    async def read(session: Session, page: "Page") -> Result:
        result: Result = {}
        if expression := arguments.get("expression"):
            result["result"] = await _evaluate(page, expression, context.settings.output_limit)
            await session.events.settle()
        result["messages"] = list(session.events.console)
        if arguments.get("clear"):
            session.events.console.clear()
        return result

    return await act(context, read)


async def _evaluate(page: "Page", expression: str, limit: int) -> str:
    """The value as JSON, cut to so many characters before it leaves the page."""
    from playwright.async_api import Error

    try:
        value = await page.evaluate_handle(expression)
    except Error as problem:
        if NEEDS_ASYNC not in problem.message:
            raise
        value = await page.evaluate_handle(f"async () => ({expression})")
    try:
        return str(await value.evaluate(AS_TEXT, limit))
    finally:
        await value.dispose()


TOOL = Tool(
    "browser_console",
    "browser",
    "Read what the page wrote to the console, errors of scripts included; with expression, evaluate JavaScript first.",
    parameters(
        [],
        expression={"type": "string", "description": "JavaScript to evaluate in the page"},
        clear={"type": "boolean", "description": "forget the messages afterwards"},
    ),
    browser_console,
    requirement,
)
