"""Search providers that are asked over HTTP and answer in JSON."""

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from trajectile.configuration.settings import Settings
from trajectile.model.keys import key_in
from trajectile.tools.fetching import FetchError, WebClient, read_body
from trajectile.tools.retrying import wait_before_retry
from trajectile.tools.tool import ToolContext
from trajectile.tools.web.providers.provider import Found, Provider, Request, SearchError

RETRIES = 2
ANSWER_MAX_BYTES = 8 << 20
SAID_CHARACTERS = 200
NO_CREDIT = (402, 432, 433)
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Service:
    """An HTTP service: where it is, which variable holds its key, how it is asked and how its answer is read.

    `own_url` is the setting that must name its address, for services that everybody runs for themselves.
    """

    name: str
    base_url: str
    key_variable: str
    request: Callable[[str, int, str], Request]
    results: Callable[[dict[str, Any]], list[Found]]
    own_url: str = ""

    def provider(self) -> Provider:
        return Provider(self.name, partial(search, self), self.lacks)

    def url(self, settings: Settings) -> str:
        configured = getattr(settings, self.own_url or "web_base_url") or self.base_url
        return str(configured).rstrip("/")

    def key(self) -> str:
        return key_in(self.key_variable) if self.key_variable else ""

    def lacks(self, settings: Settings) -> str:
        if self.own_url:
            return "" if self.url(settings) else f"web_provider: {self.name} needs the setting {self.own_url}"
        if self.key() or settings.web_base_url:
            return ""
        return f"web_provider: {self.name} needs {self.key_variable} in the environment"


class Answer(NamedTuple):
    status: int
    headers: Any
    content: bytes


async def search(service: Service, context: ToolContext, query: str, limit: int) -> list[Found]:
    """Up to `limit` results; SearchError says in a sentence what went wrong and which setting to look at."""
    key = service.key()
    try:
        answer = await _ask_with_retries(context, service, service.request(query, limit, key))
        return service.results(_usable(service, answer))[:limit]
    except SearchError as error:
        message = str(error).replace(key, "***") if key else str(error)
        log.warning("web_search: %s", message)
        raise SearchError(message) from None


def _usable(service: Service, answer: Answer) -> dict[str, Any]:
    data = _decoded(answer.content)
    if answer.status != 200:
        raise SearchError(_refusal(service, answer.status, _said(data)))
    if not isinstance(data, dict):
        raise SearchError(f"{service.name} answered with something else than results; check {_place(service)}")
    return data


async def _ask_with_retries(context: ToolContext, service: Service, request: Request) -> Answer:
    for attempt in range(RETRIES + 1):
        answer = await _ask(context, service, request)
        wait_s = wait_before_retry(answer.status, answer.headers, attempt)
        if wait_s is None or attempt == RETRIES:
            break
        await asyncio.sleep(wait_s)
    return answer


async def _ask(context: ToolContext, service: Service, request: Request) -> Answer:
    import aiohttp

    url = service.url(context.settings)
    session = context.shared.get(WebClient, context.settings).open
    method, headers = "GET" if request.body is None else "POST", {"Accept": "application/json", **request.headers}
    options: dict[str, Any] = {"params": request.query, "json": request.body, "headers": headers}
    try:
        # a redirect could carry the key elsewhere
        async with session.request(method, f"{url}{request.path}", allow_redirects=False, **options) as response:
            return Answer(response.status, response.headers, await read_body(response, ANSWER_MAX_BYTES))
    except (aiohttp.ClientError, FetchError) as error:
        said = getattr(getattr(error, "os_error", None), "strerror", None) or str(error) or type(error).__name__
        host = urlsplit(url).hostname
        raise SearchError(
            f"{service.name} cannot be reached at {host} ({said[:SAID_CHARACTERS]}); check {_place(service)}"
        ) from None


def _refusal(service: Service, status: int, said: str) -> str:
    what = f"(HTTP {status}{said})"
    if status in (401, 403) and service.own_url:
        return f"{service.name} refused to answer in JSON {what}; add json to search.formats in its settings.yml"
    if status in (401, 403):
        return f"{service.name} refused the key {what}; check {service.key_variable} in the environment"
    if status in NO_CREDIT:
        return f"{service.name} has no credit left {what}; top up, or choose another web_provider"
    if status == 429:
        return f"{service.name} limits the rate {what}; lower concurrency, or choose another web_provider"
    return f"{service.name} could not search {what}; try again, or choose another web_provider"


def _said(data: Any) -> str:
    """What the body of an error says, with a colon before it, as far as it is told in one of the usual ways."""
    for _ in range(3):
        if isinstance(data, dict):
            data = next((data[name] for name in ("error", "detail", "message") if data.get(name)), "")
    return f": {' '.join(data.split())[:SAID_CHARACTERS]}" if isinstance(data, str) and data else ""


def _decoded(content: bytes) -> Any:
    """JSON as the standard library reads it, lone surrogates too; None for what is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _place(service: Service) -> str:
    return service.own_url or "web_base_url and web_provider"
