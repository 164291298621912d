"""The server's routes."""

import asyncio
import random
from contextlib import suppress
from typing import Any

import orjson
from aiohttp import ClientConnectionResetError, web

from .answers import completion, error_body, models_body
from .counters import Counters
from .faults import KINDS
from .media import describe_images, images_body, png, sound
from .script import Fault, Reply, Rule, Script, make_fault, make_script, short_digest

DEFAULT_MODELS = ["scripted"]
REQUEST_MAX_BYTES = 2**30


class Server:
    """Answers from `script`; `outage` is a fault that strikes every call while it is set."""

    def __init__(self, script: Script, counters: Counters) -> None:
        self.script = script
        self.counters = counters
        self.outage: Fault | None = None
        self._jitter = random.Random(script.seed)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=REQUEST_MAX_BYTES)
        app.router.add_post("/v1/chat/completions", self.chat)
        app.router.add_post("/v1/images/generations", self.draw)
        app.router.add_get("/v1/images/{name}", self.show_image)
        app.router.add_post("/v1/audio/speech", self.speak)
        app.router.add_get("/v1/models", self.models)
        app.router.add_get("/_counters", self.show_counters)
        app.router.add_get("/_requests", self.show_requests)
        app.router.add_post("/_control", self.control)
        return app

    async def models(self, request: web.Request) -> web.StreamResponse:
        if refused := self._refused(request, None):
            return refused
        if self.outage:
            return await KINDS[self.outage.kind](request, self.outage, b"{}")
        return _json(models_body(self.script.models or DEFAULT_MODELS))

    async def chat(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        try:
            body = orjson.loads(raw)
            prompt, turn = locate(body["messages"])
        except (ValueError, KeyError, TypeError) as error:
            return _json(error_body(f"bad request: {error!r}", "invalid_request_error"), 400)
        if refused := self._refused(request, body.get("model")):
            return refused
        if self.script.keep_requests:
            self.counters.requests.append(body)
        rule = self.script.rule_for(prompt)
        seen = None if rule.replies else describe_images(body["messages"])
        reply = seen or self.script.reply_for(rule, prompt, turn)
        normal = completion(reply, prompt, turn, body, len(raw), self.script.reasoning_style)
        return await self._answer(request, rule, normal, prompt, turn, reply.is_final)

    async def draw(self, request: web.Request) -> web.StreamResponse:
        """Draw by the rules for the prompt: `usage` and, with the text `url`, a URL in the answer are its reply's."""
        body = orjson.loads(await request.read())
        if refused := self._refused(request, body.get("model")):
            return refused
        prompt = body["prompt"]
        rule = self.script.rule_for(prompt)
        reply = rule.replies[0] if rule.replies else Reply()
        url = f"{request.url.origin()}/v1/images/{short_digest(prompt)}.png" if reply.text == "url" else ""
        return await self._answer(request, rule, orjson.dumps(images_body(prompt, reply.usage, url)), prompt)

    async def show_image(self, request: web.Request) -> web.StreamResponse:
        self._note_key(request)
        return web.Response(body=png(request.match_info["name"]), content_type="image/png")

    async def speak(self, request: web.Request) -> web.StreamResponse:
        body = orjson.loads(await request.read())
        if refused := self._refused(request, body.get("model")):
            return refused
        text = body["input"]
        normal = sound(text, body["response_format"], body["voice"])
        return await self._answer(request, self.script.rule_for(text), normal, text, content_type="audio/mpeg")

    async def _answer(
        self,
        request: web.Request,
        rule: Rule,
        normal: bytes,
        prompt: str,
        turn: int = 0,
        is_final: bool = True,
        content_type: str = "application/json",
    ) -> web.StreamResponse:
        number = self.counters.asked(prompt, turn)
        try:
            await self._think(self.script.latency if rule.latency is None else rule.latency)
            faults = [self.outage] if self.outage else rule.faults
            if fault := next((f for f in faults if f.strikes(self.script.seed, prompt, number)), None):
                self.counters.failed(fault.kind)
                return await KINDS[fault.kind](request, fault, normal)
            response = web.Response(body=normal, content_type=content_type)
            with suppress(ClientConnectionResetError):  # the client may have been killed meanwhile
                await response.prepare(request)
                await response.write_eof()
                self.counters.answered(prompt, turn, is_final)
            return response
        finally:
            self.counters.in_flight -= 1

    async def _think(self, latency: float) -> None:
        if latency:
            await asyncio.sleep(latency * (1 + self.script.jitter * self._jitter.uniform(-1, 1)))

    def _refused(self, request: web.Request, model: str | None) -> web.Response | None:
        key, models = self.script.api_key, self.script.models
        self._note_key(request)
        if key and request.headers.get("Authorization") != f"Bearer {key}":
            return _json(error_body("Incorrect API key provided.", "invalid_request_error", "invalid_api_key"), 401)
        if model is not None and models and model not in models:
            message = f"The model `{model}` does not exist."
            return _json(error_body(message, "invalid_request_error", "model_not_found"), 404)
        return None

    def _note_key(self, request: web.Request) -> None:
        self.counters.authorizations[request.path].add(request.headers.get("Authorization", ""))

    async def show_counters(self, request: web.Request) -> web.Response:
        return _json(self.counters.summary())

    async def show_requests(self, request: web.Request) -> web.Response:
        return _json(self.counters.requests)

    async def control(self, request: web.Request) -> web.Response:
        """Take `{outage: fault or null, latency: s, script: whole script, reset_counters: true}`, each optional."""
        orders = orjson.loads(await request.read())
        if "outage" in orders:
            self.outage = make_fault(orders["outage"]) if orders["outage"] else None
        if "script" in orders:
            self.script = make_script(orders["script"])
        if "latency" in orders:
            self.script.latency = orders["latency"]
        if orders.get("reset_counters"):
            self.counters.reset()
        return _json({"ok": True})


def locate(messages: list[dict[str, Any]]) -> tuple[str, int]:
    """Return the text of the first user message and the number of assistant turns after it."""
    first = next(i for i, m in enumerate(messages) if m["role"] == "user")
    content = messages[first].get("content") or ""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    return content, sum(m["role"] == "assistant" for m in messages[first + 1 :])


def _json(data: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(data), content_type="application/json")
