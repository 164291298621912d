"""Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search."""

from typing import Any

from trajectile.tools.web.providers.provider import Found, Request, found
from trajectile.tools.web.providers.service import Service


def request(query: str, limit: int, key: str) -> Request:
    body = {"query": query, "max_results": limit, "search_depth": "basic"}
    return Request("/search", body=body, headers={"Authorization": f"Bearer {key}"})


def results(answer: dict[str, Any]) -> list[Found]:
    return found(answer.get("results"), "title", "url", "content")


PROVIDER = Service("tavily", "https://api.tavily.com", "TAVILY_API_KEY", request, results).provider()
