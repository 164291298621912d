"""The model client against a scripted server: what goes out, what comes back, and how it ends."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted_server.answers import STYLES
from scripted_server.fixture import ScriptedServer, read_log
from trajectile.errors import FatalError, PromptError
from trajectile.model.classify import read_refusal
from trajectile.model.client import ModelClient
from trajectile.model.errors import UnknownModel, Unreachable, WrongKey
from trajectile.model.preflight import check_endpoint
from trajectile.model.reply import Reply
from trajectile.model.request import build_body
from trajectile.model.settings import ModelSettings
from trajectile.rows import ToolCall, Usage

CALL = {"name": "terminal", "arguments": {"command": "ls"}, "id": "call_1"}
REPLIES = [{"reasoning": "I look.", "tool_calls": [CALL]}, {"text": "Two files.", "reasoning": "I saw."}]


def settings(server: ScriptedServer, **changes: Any) -> ModelSettings:
    plain = ModelSettings(server.base_url, "key", "m", request_timeout_s=10, max_retries=1, backoff_s=0.01)
    return replace(plain, **changes)


async def ask(options: ModelSettings, *messages: dict[str, Any]) -> Reply:
    async with ModelClient(options) as client:
        return await client.complete(list(messages), [], deadline=None)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_conversation_of_two_turns() -> None:
    with ScriptedServer([{"match": "list", "replies": REPLIES}]) as server:
        first = asyncio.run(ask(settings(server), user("list")))
        result = {"role": "tool", "tool_call_id": "call_1", "content": "a b"}
        second = asyncio.run(ask(settings(server), user("list"), first.message, result))
        assert server.counters()["prompts"]["list"] == {"calls": 2, "finished": 1}
        assert [e["final"] for e in read_log(server.log) if e["event"] == "answered"] == [False, True]
    assert first.tool_calls == [ToolCall("call_1", "terminal", '{"command":"ls"}')]
    assert (first.content, first.reasoning, first.finish_reason) == ("", "I look.", "tool_calls")
    assert first.message["reasoning_content"] == "I look."
    assert (second.content, second.reasoning, second.finish_reason) == ("Two files.", "I saw.", "stop")
    assert second.latency_s > 0 and second.usage.prompt_tokens > 0


@pytest.mark.parametrize("style", [s for s in STYLES if s != "none"])
def test_reasoning_in_every_style_gives_the_same_reply(style: str) -> None:
    with ScriptedServer([{"match": "list", "replies": REPLIES}], reasoning_style=style) as server:
        turns = [asyncio.run(ask(settings(server), user("list"), *[{"role": "assistant"}] * n)) for n in (0, 1)]
    assert [(t.content, t.reasoning) for t in turns] == [("", "I look."), ("Two files.", "I saw.")]


def test_only_set_parameters_go_out() -> None:
    plain = ModelSettings("http://h/v1", "key", "m")
    assert build_body(plain, [user("a")], []) == {"model": "m", "messages": [user("a")]}
    full = replace(plain, max_tokens=5, temperature=0.0, top_p=0.9, seed=0, extra_body={"provider": {"sort": "price"}})
    body = build_body(full, [user("a")], [{"type": "function"}])
    assert list(body) == ["model", "messages", "tools", "max_tokens", "temperature", "top_p", "seed", "provider"]
    assert (body["temperature"], body["seed"]) == (0.0, 0)


@pytest.mark.parametrize("arguments", ["{'a': 1}", "", "[1]", '{"a": '])
def test_past_arguments_that_are_no_object_go_out_as_an_empty_one(arguments: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "t", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    sent = build_body(ModelSettings("http://h/v1", "key", "m"), [message], [])["messages"][0]
    assert sent["tool_calls"][0]["function"] == {"name": "t", "arguments": "{}"}
    assert call["function"]["arguments"] == arguments


def test_lone_surrogates_are_replaced_both_ways() -> None:
    body = '{"choices": [{"message": {"content": "a\\ud800b"}}]}'
    fault = {"kind": "answer", "body": body}
    with ScriptedServer([{"regex": "^x", "faults": [fault]}]) as server:
        reply = asyncio.run(ask(settings(server), user("x\udfff")))
        assert list(server.counters()["prompts"]) == ["x�"]
    assert reply.content == "a�b"


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([None], ToolCall()),
        ([{"id": 7, "function": {"name": None, "arguments": None}}], ToolCall("7", "", "")),
        ([{"function": {"name": "t", "arguments": {"a": [1]}}}], ToolCall("", "t", '{"a":[1]}')),
        ([{"id": "i", "function": {"name": "t", "arguments": 3}}], ToolCall("i", "t", "3")),
        ([{"id": "i", "function": {"name": "t", "arguments": "{'a': 1}"}}], ToolCall("i", "t", "{'a': 1}")),
    ],
)
def test_tool_calls_are_kept_as_sent(calls: list[Any], expected: ToolCall) -> None:
    assert reply_to({"choices": [{"message": {"tool_calls": calls}}]}).tool_calls == [expected]


def test_stream_that_nobody_asked_for() -> None:
    head = '{"index":0,"id":"c","function":{"name":"terminal","arguments":"{\\"comm"}}'
    tail = '{"index":0,"function":{"arguments":"and\\":1}"}}'
    events = [
        f'{{"choices":[{{"delta":{{"reasoning":"hm","tool_calls":[{head}]}}}}]}}',
        f'{{"choices":[{{"delta":{{"tool_calls":[{tail}]}},"finish_reason":"tool_calls"}}]}}',
        '{"choices":[],"usage":{"prompt_tokens":3}}',
    ]
    body = ": PROCESSING\n\n" + "".join(f"data: {event}\n\n" for event in events)
    reply = reply_to(body)
    assert reply.tool_calls == [ToolCall("c", "terminal", '{"command":1}')]
    assert (reply.reasoning, reply.usage.prompt_tokens) == ("hm", 3)


def test_usage_of_every_provider() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "cost": 0.25,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    answer = {"choices": [{"message": {"content": "a"}}], "usage": usage}
    assert reply_to(answer).usage == Usage(10, 5, 2, 4, 0.25)
    odd = '{"choices": [{"message": {"content": "a"}}], "usage": {"prompt_tokens": -1, "cost": NaN}}'
    assert reply_to(odd).usage == Usage()


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_answers_that_were_cut_short_may_be_empty(reason: str) -> None:
    reply = reply_to({"choices": [{"finish_reason": reason, "message": {"content": None, "reasoning": "hm"}}]})
    assert (reply.content, reply.reasoning, reply.finish_reason) == ("", "hm", reason)


def test_answer_without_end_is_cut() -> None:
    with ScriptedServer([{"match": "a", "faults": [{"kind": "huge"}]}]) as server:
        with pytest.raises(PromptError, match="larger than 64 MB") as caught:
            asyncio.run(ask(settings(server, request_timeout_s=60), user("a")))
        assert server.counters()["calls"] == 1
    assert caught.value.kind == "bad_answer"


def test_the_key_stands_in_no_message() -> None:
    fault = {"kind": "answer", "status": 401, "body": {"error": {"message": "bad key canary-7"}}}
    with (
        ScriptedServer([{"match": "a", "faults": [fault]}]) as server,
        pytest.raises(WrongKey, match="TRAJECTILE_API_KEY") as caught,
    ):
        asyncio.run(ask(settings(server, api_key="canary-7"), user("a")))
    assert "canary-7" not in str(caught.value) and "canary-7" not in repr(settings(server, api_key="canary-7"))


def test_preflight_accepts_and_refuses() -> None:
    with ScriptedServer(models=["qwen-large", "qwen-small"], api_key="key") as server:
        asyncio.run(check_endpoint(settings(server, model="qwen-small")))
        with pytest.raises(UnknownModel, match="such as qwen-small, qwen-large"):
            asyncio.run(check_endpoint(settings(server, model="qwen-smal")))
        with pytest.raises(WrongKey, match="TRAJECTILE_API_KEY"):
            asyncio.run(check_endpoint(settings(server, api_key="other")))
        asyncio.run(check_without_list(server))
    with pytest.raises(Unreachable, match="check base_url"):
        asyncio.run(check_endpoint(settings(server)))


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_loopback_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    with ScriptedServer([{"match": "list", "replies": REPLIES}], models=["m"]) as server:
        for host in ("127.0.0.1", "localhost"):
            here = settings(server, base_url=server.base_url.replace("127.0.0.1", host))
            asyncio.run(check_endpoint(here))
            assert asyncio.run(ask(here, user("list"))).reasoning == "I look."
    for elsewhere in ("http://127.0.0.2:2/v1", "http://[::1]:2/v1"):
        with pytest.raises(Unreachable) as caught:
            asyncio.run(check_endpoint(settings(server, base_url=elsewhere)))
        assert "127.0.0.1" not in str(caught.value)


def test_other_hosts_are_asked_by_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    plain = ModelSettings("http://model.invalid/v1", "key", "m")
    with pytest.raises(Unreachable, match=r"'127\.0\.0\.1', 1\b"):
        asyncio.run(check_endpoint(plain))


def test_a_proxy_of_an_unknown_kind_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "ftp://proxy.invalid")
    with pytest.raises(FatalError, match=r"ALL_PROXY leads to no proxy: .*'ftp://proxy\.invalid'"):
        asyncio.run(check_endpoint(ModelSettings("https://model.invalid/v1", "key", "m")))


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_read_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "ca.pem"
    if content:
        path.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with pytest.raises(FatalError, match=f"SSL_CERT_FILE is {path}, and no certificates can be read there"):
        asyncio.run(check_endpoint(ModelSettings("https://model.invalid/v1", "key", "m")))


def test_a_page_of_open_tags_does_not_stop_the_process() -> None:
    for body in ("<script" * 60_000, "<" * 60_000):
        started = time.process_time()
        assert read_refusal(500, body.encode()).is_page
        assert time.process_time() - started < 5, "minutes, where each tag is looked for anew"


async def check_without_list(server: ScriptedServer) -> None:
    server.control(outage={"kind": "answer", "status": 405})
    await check_endpoint(settings(server))


def reply_to(body: Any) -> Reply:
    """Return the reply that the client reads from a body."""
    with ScriptedServer([{"match": "a", "faults": [{"kind": "answer", "body": body}]}]) as server:
        return asyncio.run(ask(settings(server), user("a")))
