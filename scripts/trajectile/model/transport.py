"""HTTP to one endpoint through the openai client."""

import os
from typing import Any

import aiohttp
import httpx2
from openai import APIStatusError, AsyncOpenAI, DefaultAioHttpClient

from trajectile.errors import FatalError, PromptError
from trajectile.model.errors import Retryable
from trajectile.model.reply import Answer
from trajectile.model.settings import ModelSettings
from trajectile.model.turnstile import Turnstile

ANSWER_MAX_BYTES = 64 * 2**20
CONNECT_TIMEOUT_S = 30.0
CONNECTIONS_MIN = 1000
LOOPBACK = ("all://127.0.0.0/8", "all://[::1]", "all://localhost")


class Endpoint:
    """A pool of connections to `settings.base_url`; close it with `aclose`.

    Requests go out as bytes and come back as bytes: building and checking the client's typed models would cost three
    times the CPU and would refuse answers that we can read. Redirects are not followed, because a POST would become
    a GET.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self._client = AsyncOpenAI(
            base_url=settings.base_url,
            api_key=settings.api_key or "none",
            max_retries=0,
            http_client=_http(max(CONNECTIONS_MIN, settings.concurrency)),
        )
        self._turnstile = Turnstile()

    async def post(self, path: str, body: bytes) -> Answer:
        """Send JSON; raises Retryable (timeout, connection) or PromptError (bad_answer) where no answer comes."""
        await self._turnstile.enter()
        try:
            response = await self._client.post(path, content=body, cast_to=httpx2.Response)
        except Exception as error:
            response = _answer_in(error)
        return Answer(response.status_code, response.headers, response.content)

    async def get(self, path: str) -> Answer:
        """Ask for `path`; raises as `post`."""
        try:
            response = await self._client.get(path, cast_to=httpx2.Response)
        except Exception as error:
            response = _answer_in(error)
        return Answer(response.status_code, response.headers, response.content)

    async def aclose(self) -> None:
        await self._client.close()


def _http(connections: int) -> httpx2.AsyncClient:
    try:
        # the caller bounds the whole exchange; a limit for each read would let a slow drip run for ever
        return DefaultAioHttpClient(
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
            limits=httpx2.Limits(max_connections=connections, max_keepalive_connections=connections),
            follow_redirects=False,
            event_hooks={"response": [_cap]},
            mounts=dict.fromkeys(LOOPBACK),  # without a transport of its own, and so without a proxy
        )
    except ValueError as error:
        raise FatalError(
            f"HTTP_PROXY, HTTPS_PROXY or ALL_PROXY leads to no proxy: set it to http://host:port or unset it. ({error})"
        ) from None
    except OSError as error:
        raise FatalError(
            f"SSL_CERT_FILE is {os.environ.get('SSL_CERT_FILE', 'not set')}, and no certificates can be read there: "
            f"set it to a file of CA certificates, or unset it. ({error.strerror or error})"
        ) from None


class _TooLarge(Exception):
    pass


class _Capped(httpx2.AsyncByteStream):
    """A body that ends with an error when it grows too large to be an answer."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> Any:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > ANSWER_MAX_BYTES:
                raise _TooLarge
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _cap(response: httpx2.Response) -> None:
    response.stream = _Capped(response.stream)


def _answer_in(error: Exception) -> httpx2.Response:
    """Return the answer that the client wraps in an error, else raise what happened as an error of ours.

    Three HTTP libraries lie below, each with exceptions of its own for what a server can do wrong.
    """
    if isinstance(error, APIStatusError):
        return error.response
    if isinstance(error, _TooLarge):
        raise PromptError("bad_answer", f"the answer is larger than {ANSWER_MAX_BYTES >> 20} MB") from None
    chain = _causes(error)
    said = str(chain[-1]) or type(chain[-1]).__name__
    if any(isinstance(e, aiohttp.ClientResponseError) for e in chain):
        raise Retryable("bad_answer", f"the answer is not HTTP: {said}") from error
    raise Retryable("connection", f"no answer from the server: {said}") from error


def _causes(error: BaseException) -> list[BaseException]:
    chain = [error]
    while (cause := chain[-1].__cause__) is not None and cause not in chain:
        chain.append(cause)
    return chain
