"""Waiting as told, and giving up when told."""

import asyncio
import time
from email.utils import formatdate
from typing import Any

import pytest
from scripted_server.fixture import ScriptedServer
from trajectile.errors import PromptError
from trajectile.model.client import ModelClient
from trajectile.model.errors import Retryable
from trajectile.model.retry import Retries
from trajectile.model.retry_after import asked_wait_s
from trajectile.model.settings import ModelSettings

SETTINGS = ModelSettings("http://h/v1", "key", "m", max_retries=3, backoff_s=1.0, backoff_max_s=4.0)


@pytest.mark.parametrize(
    ("headers", "metadata", "low", "high"),
    [
        ({"retry-after": "5"}, {}, 5, 5),
        ({"retry-after": "0.5"}, {}, 0.5, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, {}, 1.5, 1.5),
    ],
)
def test_every_way_to_say_how_long(headers: dict[str, str], metadata: Any, low: float, high: float) -> None:
    wait = asked_wait_s(headers, metadata)
    assert wait is not None and low <= wait <= high


def test_a_moment_to_wait_for() -> None:
    moment = time.time() + 100
    date = asked_wait_s({"retry-after": formatdate(moment, usegmt=True)}, {})
    reset = asked_wait_s({}, {"headers": {"X-RateLimit-Reset": str(int(moment * 1000))}})
    assert date is not None and 95 < date <= 100
    assert reset is not None and 95 < reset <= 100
    assert not asked_wait_s({"retry-after": formatdate(moment - 500, usegmt=True)}, {})


@pytest.mark.parametrize("value", ["", "soon", "-5", "nan", "inf", "Thu, 99 Foo 2026"])
def test_rubbish_says_nothing(value: str) -> None:
    assert not asked_wait_s({"retry-after": value}, {"headers": None})


def test_backoff_doubles_up_to_its_limit() -> None:
    retries = Retries(SETTINGS, None)
    waits = [retries.wait_s(Retryable("rate_limit", "slow")) for _ in range(6)]
    assert all(full / 2 <= wait <= full for wait, full in zip(waits, [1, 2, 4, 4, 4, 4], strict=True))


def test_a_rate_limit_costs_no_retry() -> None:
    retries = Retries(SETTINGS, None)
    for _ in range(50):
        retries.wait_s(Retryable("rate_limit", "slow"))
    for _ in range(3):
        retries.wait_s(Retryable("server_error", "down"))
    with pytest.raises(PromptError, match="after 3 retries"):
        retries.wait_s(Retryable("server_error", "down"))


def test_no_sleep_past_the_deadline() -> None:
    async def run() -> str:
        retries = Retries(SETTINGS, asyncio.get_running_loop().time() + 60)
        assert retries.wait_s(Retryable("rate_limit", "slow", wait_s=50)) == 50
        with pytest.raises(PromptError) as caught:
            retries.wait_s(Retryable("rate_limit", "slow", wait_s=3600))
        return str(caught.value)

    assert "3600 s" in asyncio.run(run())


@pytest.mark.parametrize("told", ["1", "{date+2}"])
def test_nine_of_ten_calls_limited(told: str) -> None:
    """Case A12: nobody is dropped, nobody comes too early, and the limit falls."""
    fault = {"kind": "answer", "status": 429, "headers": {"Retry-After": told}, "times": 1}
    with ScriptedServer([{"regex": "^often", "faults": [fault]}]) as server:
        waits: list[tuple[str, float]] = []
        started = time.monotonic()
        limit, contents = asyncio.run(many(server, 24, lambda *wait: waits.append(wait)))
        counts = server.counters()
    assert len(contents) == 24 and all(contents)
    assert {reason for reason, _ in waits} == {"rate_limit"}
    assert all(seconds <= 2.1 for _, seconds in waits)
    assert time.monotonic() - started >= 0.95
    assert counts["finished"] == 24 and counts["max_in_flight"] <= 16
    assert limit < 16


async def many(server: ScriptedServer, number: int, on_wait: Any) -> tuple[float, list[str]]:
    options = ModelSettings(server.base_url, "key", "m", concurrency=16)
    lowest = 16.0

    async with ModelClient(options, on_wait=on_wait) as client:

        async def one(i: int) -> str:
            nonlocal lowest
            history = [{"role": "user", "content": f"often {i}"}, {"role": "assistant", "content": "x"}]
            reply = await client.complete(history, [], deadline=asyncio.get_running_loop().time() + 60)
            lowest = min(lowest, client.limiter.limit)
            return reply.content

        contents = await asyncio.gather(*[one(i) for i in range(number)])
    return lowest, contents


def test_mostly_limited_at_random() -> None:
    """Nine in ten answers are 429 without a word on how long: all prompts get through."""
    fault = {"kind": "answer", "status": 429, "probability": 0.9}
    with ScriptedServer([{"regex": "", "faults": [fault]}]) as server:
        options = ModelSettings(server.base_url, "key", "m", concurrency=8, backoff_s=0.001, backoff_max_s=0.01)
        states = asyncio.run(flood(options, 30))
        counts = server.counters()
    assert counts["calls"] > 90 and counts["faults"]["answer"] == counts["calls"] - 30
    assert min(states) == 1.0


async def flood(options: ModelSettings, number: int) -> list[float]:
    states = []
    async with ModelClient(options, on_wait=lambda *_: states.append(client.limiter.limit)) as client:
        calls = [client.complete([{"role": "user", "content": f"{i}"}], [], deadline=None) for i in range(number)]
        await asyncio.gather(*calls)
    return states


def test_outage_in_the_middle() -> None:
    """A server that goes away and comes back loses nothing while retries last."""

    async def run(server: ScriptedServer) -> str:
        options = ModelSettings(server.base_url, "key", "m", max_retries=8, backoff_s=0.4, backoff_max_s=1)
        async with ModelClient(options) as client:
            await client.complete([{"role": "user", "content": "a"}], [], deadline=None)
            server.stop()
            asking = asyncio.create_task(client.complete([{"role": "user", "content": "b"}], [], deadline=None))
            await asyncio.sleep(0.3)
            await asyncio.to_thread(server.start)
            return (await asking).finish_reason

    with ScriptedServer() as server:
        assert asyncio.run(run(server)) == "tool_calls"
