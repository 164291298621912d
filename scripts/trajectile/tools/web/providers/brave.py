"""Brave Search: https://api-dashboard.search.brave.com/app/documentation/web-search."""

from typing import Any

from trajectile.tools.web.providers.provider import Found, Request, found
from trajectile.tools.web.providers.service import Service

QUERY_CHARACTERS, QUERY_WORDS = 400, 50


def request(query: str, limit: int, key: str) -> Request:
    asked = " ".join(query.split()[:QUERY_WORDS])[:QUERY_CHARACTERS]
    parameters = {"q": asked, "count": str(limit), "result_filter": "web", "text_decorations": "false"}
    return Request("/res/v1/web/search", query=parameters, headers={"X-Subscription-Token": key})


def results(answer: dict[str, Any]) -> list[Found]:
    web = answer.get("web")
    return found(web.get("results") if isinstance(web, dict) else None, "title", "url", "description")


PROVIDER = Service("brave", "https://api.search.brave.com", "BRAVE_API_KEY", request, results).provider()
