"""Tool `web_search`."""

import asyncio

from trajectile.tools.fitting import fitted
from trajectile.tools.tool import Arguments, Tool, ToolContext, error, parameters
from trajectile.tools.web.providers.choice import choose, lacks

DEFAULT_RESULTS, RESULTS_MAX = 5, 20
QUERY_CHARACTERS = 2000
TITLE_CHARACTERS, DESCRIPTION_CHARACTERS = 300, 1000


async def web_search(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON, `data.web` is a list of title, url, description and position."""
    provider, limit = choose(context.settings), int(arguments.get("limit", DEFAULT_RESULTS))
    query = " ".join(arguments["query"].encode("utf-8", "replace").decode().split())
    if not query:
        return error("the query is empty")
    try:
        async with asyncio.timeout(context.settings.web_timeout):
            results = await provider.search(context, query, limit)
    except TimeoutError:
        return error(f"{provider.name} did not answer within {context.settings.web_timeout:g} s (web_timeout)")

    def shown(share: int) -> dict[str, object]:
        web = [
            {
                "title": each.title[:TITLE_CHARACTERS],
                "url": each.url,
                "description": each.description[: min(share, DESCRIPTION_CHARACTERS)],
                "position": position,
            }
            for position, each in enumerate(results[:limit], 1)
        ]
        return {"success": True, "data": {"web": web}}

    return fitted(shown, context.settings.output_limit)


TOOL = Tool(
    "web_search",
    "web",
    "Search the web. Returns titles, addresses and short descriptions of the best results.",
    parameters(
        ["query"],
        query={"type": "string", "minLength": 1, "maxLength": QUERY_CHARACTERS},
        limit={
            "type": "integer",
            "minimum": 1,
            "maximum": RESULTS_MAX,
            "description": f"results, {DEFAULT_RESULTS} if not given",
        },
    ),
    web_search,
    lacks,
)
