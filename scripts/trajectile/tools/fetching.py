"""Fetching what a URL leads to that a model wrote: from public addresses alone, within limits of time and size."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urldefrag, urljoin

from trajectile.configuration.settings import Settings
from trajectile.tools.addresses import AddressRefused, checked_url, guarded_socket
from trajectile.tools.retrying import wait_before_retry
from trajectile.tools.tool import ToolContext
from trajectile.tools.unpacking import Unpacking

if TYPE_CHECKING:
    import aiohttp

USER_AGENT = "Trajectile/0.1 (research agent that reads single pages; no crawler)"
CONNECTIONS, CONNECTIONS_PER_HOST = 100, 8
CONNECT_TIMEOUT_S = 15
CHUNK_BYTES = 1 << 16
REDIRECTS = frozenset({301, 302, 303, 307, 308})
REDIRECTS_MAX = 8
RETRIES = 2


class FetchError(OSError):
    """A URL led to nothing that can be used; the message says why in a few words."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class Page(NamedTuple):
    """What a server answered, whatever its status: `url` after redirects, `media_type` in small letters."""

    url: str
    status: int
    media_type: str
    charset: str
    content: bytes


class WebClient:
    """One process's connections: `guarded` for URLs that models write, `open` for services that the user named."""

    def __init__(self, settings: Settings) -> None:
        self._allow_private = settings.web_allow_private
        self._sessions: dict[str, aiohttp.ClientSession] = {}

    @property
    def guarded(self) -> "aiohttp.ClientSession":
        return self._session("guarded", limit_per_host=CONNECTIONS_PER_HOST, socket_factory=self._factory())

    @property
    def open(self) -> "aiohttp.ClientSession":
        return self._session("open")

    async def close(self) -> None:
        while self._sessions:
            await self._sessions.popitem()[1].close()

    def _factory(self) -> Any:
        return partial(guarded_socket, allow_private=self._allow_private)

    def _session(self, name: str, **options: Any) -> "aiohttp.ClientSession":
        import aiohttp

        if name not in self._sessions:
            self._sessions[name] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS, **options),
                headers={"User-Agent": USER_AGENT, "Accept-Encoding": "gzip, deflate"},
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
                # prompts must not see each other's cookies, and aiohttp's own unpacking has no limit in all versions
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._sessions[name]


async def fetch(
    context: ToolContext,
    url: str,
    *,
    timeout_s: float | None = None,
    max_bytes: int | None = None,
    accept: str = "*/*",
) -> Page:
    """GET a URL, with redirects, and short retries after 429 and 5xx; by default within web_timeout and web_max_bytes.

    Raises ValueError for what is no http or https URL, AddressRefused where it leads to an address that tools may not
    connect to, FetchError (an OSError) where no answer can be had. A status of 400 and above is an answer.
    """
    seconds = timeout_s or context.settings.web_timeout
    limit = max_bytes or context.settings.web_max_bytes
    session = context.shared.get(WebClient, context.settings).guarded
    try:
        async with asyncio.timeout(seconds):
            return await _follow(session, checked_url(url).geturl(), limit, accept)
    except TimeoutError:
        raise FetchError(f"no answer within {seconds:g} s") from None


async def _follow(session: "aiohttp.ClientSession", url: str, limit: int, accept: str) -> Page:
    for _ in range(REDIRECTS_MAX + 1):
        page, target = await _get_with_retries(session, url, limit, accept)
        if not target:
            return page
        url = checked_url(urldefrag(urljoin(url, target)).url).geturl()
    raise FetchError(f"more than {REDIRECTS_MAX} redirects")


async def _get_with_retries(
    session: "aiohttp.ClientSession", url: str, limit: int, accept: str
) -> tuple[Page, str | None]:
    for attempt in range(RETRIES + 1):
        page, headers = await _get(session, url, limit, accept)
        wait_s = wait_before_retry(page.status, headers, attempt)
        if wait_s is None or attempt == RETRIES:
            break
        await asyncio.sleep(wait_s)
    return page, headers.get("Location") if page.status in REDIRECTS else None


async def _get(session: "aiohttp.ClientSession", url: str, limit: int, accept: str) -> tuple[Page, Any]:
    import aiohttp

    try:
        async with session.get(url, allow_redirects=False, headers={"Accept": accept}) as response:
            content = b"" if response.status in REDIRECTS else await read_body(response, limit)
            charset = response.charset or ""
            return Page(url, response.status, response.content_type.lower(), charset, content), response.headers
    except aiohttp.ClientConnectorError as error:
        if isinstance(error.os_error, AddressRefused):
            raise error.os_error from None
        raise FetchError(f"cannot connect: {error.os_error.strerror or error.os_error}") from None
    except aiohttp.InvalidURL:
        raise ValueError(f"not a URL: {url[:200]}") from None
    except aiohttp.ClientResponseError as error:
        raise FetchError(f"no usable answer: not HTTP: {' '.join(error.message.split())[:300]}") from None
    except aiohttp.ClientError as error:
        raise FetchError(f"no usable answer: {str(error)[:300] or type(error).__name__}") from None


async def read_body(response: "aiohttp.ClientResponse", limit: int) -> bytes:
    """The body of an answer, unpacked; FetchError where it is larger than `limit` bytes or cannot be unpacked."""
    unpacking, body = Unpacking(response.headers.get("Content-Encoding", "")), bytearray()
    async for chunk in response.content.iter_chunked(CHUNK_BYTES):
        body += unpacking.feed(chunk, limit + 1 - len(body))
        if len(body) > limit:
            raise FetchError(f"larger than {limit} bytes")
    return bytes(body)
