"""The OpenAI-compatible front: GET /v1/models and POST /v1/chat/completions over the engine's own server."""

import hmac
import json
import logging
from collections.abc import Awaitable, Callable

import aiohttp
from aiohttp import web

from trajectile.model.local.catalogue import PREFIX
from trajectile.model.local.rendering import BadRequest
from trajectile.model.local.replies import read_reply
from trajectile.model.local.schemas import Json
from trajectile.model.local.translate import engine_request

MAX_BODY_BYTES = 32 << 20
BUSY_RETRY_S = 2
CONTEXT_OVERFLOW = "exceed_context_size_error"
POOL_FULL = "context size has been exceeded"

log = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def error_response(
    status: int, message: str, kind: str, code: str | None = None, param: str | None = None
) -> web.Response:
    """An error in OpenAI's form."""
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    headers = {"Retry-After": str(BUSY_RETRY_S)} if status == 503 else None
    return web.json_response(body, status=status, headers=headers)


def invalid(message: str, code: str | None = None, param: str | None = None) -> web.Response:
    """A 400 in OpenAI's form."""
    return error_response(400, message, "invalid_request_error", code, param)


class Front:
    """Answers for one model; `engine` is the engine's base address, `engine_key` its key.

    Without an `api_key` it answers everybody.
    """

    def __init__(self, model: str, api_key: str, engine: str, engine_key: str) -> None:
        self.model = model
        self.api_key = api_key
        self.engine = engine
        self.headers = {"Authorization": f"Bearer {engine_key}"}
        self.session: aiohttp.ClientSession | None = None

    def application(self) -> web.Application:
        """The aiohttp application of this front."""
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_BODY_BYTES)
        app.router.add_get("/v1/models", self.models)
        app.router.add_post("/v1/chat/completions", self.chat)
        app.on_startup.append(self._open)
        app.on_cleanup.append(self._close)
        return app

    async def _open(self, _app: web.Application) -> None:
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        self.session = aiohttp.ClientSession(headers=self.headers, connector=connector, timeout=timeout)

    async def _close(self, _app: web.Application) -> None:
        if self.session is not None:
            await self.session.close()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        expected = f"Bearer {self.api_key}".encode()
        if self.api_key and not hmac.compare_digest(request.headers.get("Authorization", "").encode(), expected):
            return error_response(401, "wrong or missing API key", "authentication_error", "invalid_api_key")
        try:
            return await handler(request)
        except web.HTTPException as error:
            return error_response(error.status, error.reason, "invalid_request_error")
        except Exception as error:
            log.exception("request failed")
            return error_response(500, f"{type(error).__name__}: {error}", "server_error")

    async def models(self, _request: web.Request) -> web.Response:
        """The one model that is served."""
        entry = {"id": self.model, "object": "model", "created": 0, "owned_by": "local"}
        return web.json_response({"object": "list", "data": [entry]})

    async def chat(self, request: web.Request) -> web.Response:
        """One chat completion."""
        try:
            body = await request.json()
        except ValueError:
            return invalid("the body is not JSON")
        if not isinstance(body, dict):
            return invalid("the body is not a JSON object")
        wanted = str(body.get("model", ""))
        if wanted.removeprefix(PREFIX) != self.model.removeprefix(PREFIX):
            message = f"model {wanted!r} is not served here, {self.model!r} is"
            return error_response(404, message, "invalid_request_error", "model_not_found", "model")
        try:
            translated = engine_request(body)
        except BadRequest as error:
            return invalid(str(error))
        except (KeyError, TypeError, AttributeError) as error:
            return invalid(f"malformed request: {type(error).__name__}: {error}")
        return await self._complete(translated)

    async def _complete(self, body: Json) -> web.Response:
        assert self.session is not None
        url = f"{self.engine}/v1/chat/completions"
        async with self.session.post(url, json=body) as response:
            answer = json.loads(await response.read())
            if response.status != 200:
                return engine_error(response.status, answer.get("error", {}))
        return web.json_response(self._completion(answer))

    def _completion(self, answer: Json) -> Json:
        choice = answer["choices"][0]
        reply = read_reply(choice["message"].get("content") or "", choice["finish_reason"])
        kept = {key: answer[key] for key in ("id", "object", "created", "usage")}
        return {**kept, "model": self.model, "choices": [{"index": 0, **reply._asdict(), "logprobs": None}]}


def engine_error(status: int, error: Json) -> web.Response:
    """The engine's error in OpenAI's form: too long is the caller's 400, a full pool of tokens a 503 to retry."""
    message = str(error.get("message", "the engine failed"))
    if error.get("type") == CONTEXT_OVERFLOW:
        return invalid(message, "context_length_exceeded", "messages")
    if POOL_FULL in message.lower():
        return error_response(503, message, "server_error", "overloaded")
    if status < 500:
        return invalid(message)
    return error_response(status, message, "server_error")
