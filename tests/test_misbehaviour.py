"""What a server can do wrong, and what comes of it: each row is one call over real HTTP."""

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from scripted_server.fixture import ScriptedServer
from trajectile.errors import FatalError, PromptError
from trajectile.model.client import ModelClient
from trajectile.model.errors import KINDS, EndsPrompt
from trajectile.model.reply import Reply
from trajectile.model.settings import ModelSettings

MAX_RETRIES = 2
DEADLINE_S = 0.9
KEY = "canary-key-5f1d"
ALL = MAX_RETRIES + 1


class Case(NamedTuple):
    """A fault on every call (or the first `times`), the outcome, and how many calls it takes (None: several)."""

    name: str
    fault: dict[str, Any]
    outcome: str
    calls: int | None


def status(code: int, body: Any = None, *, times: int = 0, **more: Any) -> dict[str, Any]:
    message = body if body is not None else {"error": {"message": "as it is"}}
    return {"kind": "answer", "status": code, "body": message, "times": times, **more}


def says(message: str, code: Any = None, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": code}}


def ok(body: Any, content_type: str = "application/json") -> dict[str, Any]:
    return {"kind": "answer", "body": body, "content_type": content_type}


def message(**fields: Any) -> dict[str, Any]:
    return ok({"choices": [{"finish_reason": "stop", "message": {"role": "assistant", **fields}}]})


def wait(seconds: str, code: int = 429) -> dict[str, Any]:
    return status(code, headers={"Retry-After": seconds}, times=1)


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


def events(delta: str) -> dict[str, Any]:
    end = 'data: {"choices":[{"finish_reason":"stop"}]}'
    return ok(f'data: {{"choices":[{{"delta":{delta}}}]}}\n\n{end}\n\n', "text/event-stream")


def nested(field: str, levels: int = 1005) -> dict[str, Any]:
    return ok(f'{{"choices": [{{"message": {{"content": "a", {field % deep(levels)}}}}}]}}')


def parts(levels: int) -> dict[str, Any]:
    content = '[{"text": ' * levels + '"a"' + "}]" * levels
    return ok(f'{{"choices": [{{"message": {{"content": {content}}}}}]}}')


PAGE = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
EVENTS = (
    'data: {"choices":[{"delta":{"role":"assistant","content":"Hel"}}]}\n\n'
    'data: {"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
LONG = "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens."

CASES = [
    # keys, credit, models: nothing works until the user acts
    Case("401 wrong key", status(401, says("Incorrect API key", "invalid_api_key")), "WrongKey", 1),
    Case("400 wrong key", status(400, says("API key not valid. Please pass a valid key.")), "WrongKey", 1),
    Case("402 no credit", status(402, says("Insufficient credits", 402)), "NoCredit", 1),
    Case("429 quota spent", status(429, says("You exceeded", "insufficient_quota")), "NoCredit", 1),
    Case("403 forbidden", status(403, says("Key limit exceeded", 403)), "NotAllowed", 1),
    Case("404 model", status(404, says("The model `m` does not exist.", "model_not_found")), "UnknownModel", 1),
    Case("400 model", status(400, says("m is not a valid model ID", 400)), "UnknownModel", 1),
    Case("404 page", status(404, PAGE, content_type="text/html"), "UnknownModel", 1),
    # the conversation cannot go on
    Case("400 overflow by code", status(400, says("long", "context_length_exceeded")), "ContextOverflow", 1),
    Case("400 overflow by words", status(400, says(LONG)), "ContextOverflow", 1),
    Case("400 overflow, bare", status(400, {"object": "error", "message": LONG, "code": 400}), "ContextOverflow", 1),
    Case("400 overflow, list", status(400, [says("input exceeds the maximum number of tokens")]), "ContextOverflow", 1),
    Case("400 llama.cpp", status(400, says("large", 400, "exceed_context_size_error")), "ContextOverflow", 1),
    Case("413 page", status(413, PAGE, content_type="text/html"), "ContextOverflow", 1),
    Case("400 filter", status(400, says("no", "content_filter")), "ContentFilter", 1),
    Case("403 moderation", status(403, says("Input requires moderation", 403)), "ContentFilter", 1),
    # waiting as told
    Case("429 seconds", wait("0.2"), "reply", 2),
    Case("429 date, absurd", wait("{date+86400}"), "rate_limit", 1),
    Case("429 milliseconds", status(429, headers={"retry-after-ms": "100"}, times=1), "reply", 2),
    Case("429 nothing said", status(429, times=4), "reply", 5),
    Case("429 rubbish", status(429, headers={"Retry-After": "soon"}, times=1), "reply", 2),
    Case("429 for ever", status(429, headers={"Retry-After": "0.2"}), "rate_limit", None),
    Case("429 absurd", status(429, headers={"Retry-After": "86400"}), "rate_limit", 1),
    Case("503 seconds", wait("0.2", 503), "reply", 2),
    Case("503 absurd", wait("86400", 503), "server_error", 1),
    # outages
    Case("500 once", status(500, times=1), "reply", 2),
    Case("500 always", status(500), "server_error", ALL),
    Case("502 page", status(502, PAGE, content_type="text/html"), "server_error", ALL),
    Case("529 overloaded", status(529, says("Overloaded", None, "overloaded_error")), "server_error", ALL),
    Case("408", status(408), "timeout", ALL),
    Case("500 bad call", status(500, says("The output does not match the expected peg format")), "bad_answer", ALL),
    Case("reset", {"kind": "reset"}, "connection", ALL),
    Case("reset once", {"kind": "reset", "times": 1}, "reply", 2),
    Case("cut", {"kind": "cut"}, "connection", ALL),
    Case("silent", {"kind": "silent"}, "timeout", None),
    Case("drip", {"kind": "drip"}, "timeout", None),
    Case("stall", {"kind": "stall"}, "timeout", None),
    Case("no HTTP", {"kind": "raw", "body": "SSH-2.0-OpenSSH_9.2\r\n\r\n"}, "bad_answer", ALL),
    # requests that are refused
    Case("400", status(400, says("temperature is too high")), "bad_request", 1),
    Case("422", status(422, {"detail": [{"msg": "field required"}]}), "bad_request", 1),
    Case("403 page", status(403, PAGE, content_type="text/html"), "bad_request", 1),
    Case("redirect", status(302, "", headers={"Location": "/v1/chat/completions"}), "bad_answer", 1),
    # errors in a 200
    Case("200 error 429", {**ok(says("slow down", 429)), "times": 1}, "reply", 2),
    Case("200 error 502", ok(says("upstream", 502)), "server_error", ALL),
    Case("200 error 402", ok(says("no credit", 402)), "NoCredit", 1),
    Case("200 error overflow", ok(says(LONG, 400)), "ContextOverflow", 1),
    Case("200 error text", ok({"error": "went wrong"}), "model_error", ALL),
    Case("200 choice error", ok({"choices": [{"error": {"code": 502, "message": "x"}}]}), "server_error", ALL),
    Case(
        "finish error", ok({"choices": [{"finish_reason": "error", "message": {"content": "a"}}]}), "model_error", ALL
    ),
    # malformed answers
    Case("empty", ok(""), "bad_answer", ALL),
    Case("204", status(204, ""), "bad_answer", ALL),
    Case("not JSON", ok("Hello!"), "bad_answer", ALL),
    Case("page", ok(PAGE, "text/html"), "bad_answer", ALL),
    Case("cut JSON", ok('{"choices": [{"message": {"content": "a'), "bad_answer", ALL),
    Case("deep JSON", ok("[" * 100_000), "bad_answer", ALL),
    Case("deep error", ok(f'{{"error": {deep(1005)}}}'), "bad_answer", ALL),
    Case("deep 400", status(400, f'{{"error": {{"message": {deep(1005)}}}}}'), "bad_request", 1),
    Case("deep arguments", nested('"tool_calls": [{"function": {"arguments": %s}}]'), "bad_answer", ALL),
    Case("deep id", nested('"tool_calls": [{"id": %s}]'), "bad_answer", ALL),
    Case("deep reasoning", nested('"reasoning_details": %s'), "bad_answer", ALL),
    Case("deep parts", parts(500), "bad_answer", ALL),
    Case("deep error, not JSON", status(400, "[" * 100_000), "bad_request", 1),
    Case("list", ok([1, 2]), "bad_answer", ALL),
    Case("null", ok("null"), "bad_answer", ALL),
    Case("no choices", ok({"id": "a"}), "bad_answer", ALL),
    Case("choices null", ok({"choices": None}), "bad_answer", ALL),
    Case("choices empty", ok({"choices": []}), "bad_answer", ALL),
    Case("choice null", ok({"choices": [None]}), "bad_answer", ALL),
    Case("message null", ok({"choices": [{"message": None}]}), "bad_answer", ALL),
    Case("nothing said", message(content=None), "bad_answer", ALL),
    Case("reasoning only", message(content="", reasoning="hm"), "bad_answer", ALL),
    Case("content a number", message(content=42), "bad_answer", ALL),
    Case("tool_calls an object", message(tool_calls={"id": "a"}), "bad_answer", ALL),
    Case("huge", {"kind": "huge"}, "bad_answer or timeout", None),
    Case("stream calls a number", events('{"tool_calls": 5}'), "bad_answer", ALL),
    Case("stream index a list", events('{"tool_calls": [{"index": []}]}'), "bad_answer", ALL),
    Case("stream index an object", events('{"tool_calls": [{"index": {}}]}'), "bad_answer", ALL),
    Case("stream cut", ok(EVENTS[:60] + "\n\n", "text/event-stream"), "bad_answer", ALL),
    # odd, but readable
    Case("stream", ok(EVENTS, "text/event-stream"), "reply", 1),
    Case("parts in parts", parts(40), "reply", 1),
    Case("wrong content type", message(content="Hello") | {"content_type": "text/plain"}, "reply", 1),
    Case("NaN", ok('{"choices": [{"message": {"content": "a"}}], "usage": {"cost": NaN}}'), "reply", 1),
    Case("duplicate keys", ok('{"choices": [{"message": {"content": "a", "content": "b"}}]}'), "reply", 1),
    Case("not UTF-8", ok('{"choices": [{"message": {"content": "\\udcff"}}]}'), "reply", 1),
    Case("BOM", ok('﻿{"choices": [{"message": {"content": "a"}}]}'), "reply", 1),
    Case("no finish_reason", ok({"choices": [{"message": {"content": "a"}}]}), "reply", 1),
    Case("function null", message(tool_calls=[{"id": "a", "function": None}]), "reply", 1),
    Case("call null", message(tool_calls=[None]), "reply", 1),
    Case("usage null", ok({"choices": [{"message": {"content": "a"}}], "usage": None}), "reply", 1),
]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    rules = [{"match": case.name, "faults": [case.fault]} for case in CASES]
    with ScriptedServer(rules) as running:
        yield running


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_outcome(server: ScriptedServer, case: Case) -> None:
    result = asyncio.run(ask(settings_for(server), case.name))
    assert name_of(result) in case.outcome.split(" or "), repr(result)
    assert KEY not in str(result)
    if case.calls is not None:
        assert server.counters()["prompts"][case.name]["calls"] == case.calls


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        settings = replace(SETTINGS, base_url=f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
        result = asyncio.run(ask(settings, "anyone there?"))
    assert name_of(result) == "connection"


def test_unknown_host() -> None:
    result = asyncio.run(ask(replace(SETTINGS, base_url="http://nowhere.invalid/v1"), "anyone there?"))
    assert name_of(result) == "connection"


SETTINGS = ModelSettings(
    base_url="",
    api_key=KEY,
    model="m",
    request_timeout_s=0.4,
    max_retries=MAX_RETRIES,
    backoff_s=0.01,
    backoff_max_s=0.04,
)


def settings_for(server: ScriptedServer) -> ModelSettings:
    return replace(SETTINGS, base_url=server.base_url)


async def ask(settings: ModelSettings, prompt: str) -> Reply | Exception:
    """Return what a call comes to; anything that is not one of our errors, and a hang, fails the test."""
    loop = asyncio.get_running_loop()
    async with ModelClient(settings) as client:
        messages = [{"role": "user", "content": prompt}]
        try:
            async with asyncio.timeout(DEADLINE_S + 0.5):
                return await client.complete(messages, [], deadline=loop.time() + DEADLINE_S)
        except (PromptError, EndsPrompt, FatalError) as error:
            return error


def name_of(result: Reply | Exception) -> str:
    if isinstance(result, PromptError):
        assert result.kind in KINDS
        return result.kind
    return "reply" if isinstance(result, Reply) else type(result).__name__
