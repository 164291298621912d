"""Firecrawl, its own or self-hosted: https://docs.firecrawl.dev/api-reference/endpoint/search."""

from typing import Any

from trajectile.tools.web.providers.provider import Found, Request, found
from trajectile.tools.web.providers.service import Service


def request(query: str, limit: int, key: str) -> Request:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return Request("/v2/search", body={"query": query, "limit": limit}, headers=headers)


def results(answer: dict[str, Any]) -> list[Found]:
    data = answer.get("data")
    return found(data.get("web") if isinstance(data, dict) else data, "title", "url", "description")


PROVIDER = Service("firecrawl", "https://api.firecrawl.dev", "FIRECRAWL_API_KEY", request, results).provider()
