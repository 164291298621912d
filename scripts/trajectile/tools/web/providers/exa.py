"""Exa: https://exa.ai/docs/reference/search."""

from typing import Any

from trajectile.tools.web.providers.provider import Found, Request, found
from trajectile.tools.web.providers.service import Service

TEXT_CHARACTERS = 800


def request(query: str, limit: int, key: str) -> Request:
    body = {"query": query, "numResults": limit, "contents": {"highlights": {"maxCharacters": TEXT_CHARACTERS}}}
    return Request("/search", body=body, headers={"x-api-key": key})


def results(answer: dict[str, Any]) -> list[Found]:
    return found(answer.get("results"), "title", "url", "highlights", "summary", "text")


PROVIDER = Service("exa", "https://api.exa.ai", "EXA_API_KEY", request, results).provider()
