"""Search engines that need no key, through the package ddgs, in a process of its own."""

import logging
from importlib.util import find_spec

from trajectile.configuration.settings import Settings
from trajectile.tools.tool import ToolContext
from trajectile.tools.web.providers.provider import Found, Provider, SearchError, found
from trajectile.tools.web.workers import Searchers

ENGINE_TIMEOUT_S = 10.0
log = logging.getLogger(__name__)


async def search(context: ToolContext, query: str, limit: int) -> list[Found]:
    """As service.search."""
    seconds = context.settings.web_timeout
    asked = {"query": query, "limit": limit, "seconds": min(ENGINE_TIMEOUT_S, seconds)}
    try:
        answer = await context.shared.get(Searchers).ask({"search": asked}, seconds=seconds)
    except ValueError as error:
        message = f"ddgs found no engine that answers ({error}); try again, or set web_provider to one with a key"
        log.warning("web_search: %s", message)
        raise SearchError(message) from None
    return found(answer["results"], "title", "href", "body")


def lacks(settings: Settings) -> str:
    return "" if find_spec("ddgs") else "web_provider: ddgs needs the Python package ddgs (pip install ddgs)"


PROVIDER = Provider("ddgs", search, lacks)
