"""Tool `web_extract`."""

import asyncio
import time
from importlib.util import find_spec
from typing import Any

from trajectile.configuration.settings import Settings
from trajectile.sandbox.output import cut, to_text
from trajectile.tools.fetching import FetchError, Page, fetch
from trajectile.tools.fitting import fitted
from trajectile.tools.tool import Arguments, Tool, ToolContext, parameters
from trajectile.tools.web.workers import Readers

URLS_MAX = 5
URL_CHARACTERS = 2000
ERROR_CHARACTERS = 500
READ_S_MIN = 5.0
ACCEPT = "text/html, application/xhtml+xml, application/pdf, text/*;q=0.9, */*;q=0.5"
READS = ("trafilatura", "pypdf")

Extract = dict[str, Any]


async def web_extract(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON, `results` holds url, title, content and error of each page; `error` where none could be read."""
    pages = await asyncio.gather(*(extract(context, url) for url in arguments["urls"]))

    def shown(share: int) -> Extract:
        results = [page | {"content": cut(page["content"], share)} for page in pages]
        failed = all(page["error"] for page in pages)
        return {"results": results} | ({"error": "no page could be read"} if failed else {})

    return fitted(shown, context.settings.output_limit)


async def extract(context: ToolContext, url: str) -> Extract:
    """One page; `error` is null where it could be read."""
    page: Extract = {"url": clean(url), "title": "", "content": "", "error": None}
    try:
        title, content = await title_and_text(context, url.strip())
        return page | {"title": clean(title), "content": clean(content)}
    except (OSError, ValueError) as failure:
        return page | {"error": clean(str(failure))[:ERROR_CHARACTERS]}


async def title_and_text(context: ToolContext, url: str) -> tuple[str, str]:
    """Fetch and read, within web_timeout in all; OSError or ValueError says why not."""
    deadline = time.monotonic() + context.settings.web_timeout
    page = await fetch(context, url, accept=ACCEPT)
    if page.status >= 400:
        raise FetchError(f"the server answered HTTP {page.status}")
    if not page.content.strip():
        raise FetchError(f"the server answered HTTP {page.status} with nothing in it")
    return await read(context, page, max(READ_S_MIN, deadline - time.monotonic()))


async def read(context: ToolContext, page: Page, seconds: float) -> tuple[str, str]:
    task = {"url": page.url, "media_type": page.media_type, "charset": page.charset}
    answer = await context.shared.get(Readers).ask(task, page.content, seconds=seconds)
    return answer["title"], answer["text"]


def clean(text: str) -> str:
    return to_text(text.encode("utf-8", "replace"))


def lacks(settings: Settings) -> str:
    missing = [name for name in READS if not find_spec(name)]
    return f"the Python packages {' and '.join(missing)} (pip install {' '.join(missing)})" if missing else ""


TOOL = Tool(
    "web_extract",
    "web",
    f"Read web pages and PDF files, up to {URLS_MAX} URLs at once, as markdown. Long ones are cut in the middle.",
    parameters(
        ["urls"],
        urls={
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": URL_CHARACTERS},
            "minItems": 1,
            "maxItems": URLS_MAX,
        },
    ),
    web_extract,
    lacks,
)
