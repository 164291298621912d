"""A SearXNG server of one's own: https://docs.searxng.org/dev/search_api.html."""

from typing import Any

from trajectile.tools.web.providers.provider import Found, Request, found
from trajectile.tools.web.providers.service import Service


def request(query: str, limit: int, key: str) -> Request:
    return Request("/search", query={"q": query, "format": "json"})


def results(answer: dict[str, Any]) -> list[Found]:
    return found(answer.get("results"), "title", "url", "content")


PROVIDER = Service("searxng", "", "", request, results, own_url="searxng_url").provider()
