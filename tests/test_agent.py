"""The loop against the scripted server over real HTTP: every end, and what a conversation looks like then."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import Recorder
from scripted_server.fixture import ScriptedServer
from tool_contexts import tool_context
from trajectile.agent.episode import tool_stats
from trajectile.agent.loop import Agent, Limits
from trajectile.errors import PromptError
from trajectile.model.client import ModelClient
from trajectile.model.errors import NoCredit
from trajectile.model.settings import ModelSettings
from trajectile.rows import ToolStat, Usage
from trajectile.sandbox.local.sandbox import LocalSandbox
from trajectile.tools.tool import Tool, ToolContext, parameters

GOOD = {"name": "echo", "arguments": {"text": "hi"}}
UNKNOWN = {"name": "ecco", "arguments": {"text": "hi"}}
SLOW = {"name": "sleep", "arguments": {"text": ""}}
FINAL = {"text": "done", "reasoning": "because"}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


class Play:
    """One episode; `outcome` is its end_reason, or the error that came of it."""

    def __init__(self, base_url: str, folder: Path, **limits: Any) -> None:
        self.reached: list[str] = []
        schema = parameters(["text"], text={"type": "string"})
        tools = {name: Tool(name, "t", "", schema, handler) for name, handler in self.handlers().items()}
        settings = ModelSettings(base_url, "key", "scripted", max_retries=0, backoff_s=0.01)
        self.outcome: str | Exception = ""
        asyncio.run(self.run(settings, tools, folder, Limits(**{**DEFAULT_LIMITS, **limits})))

    def handlers(self) -> dict[str, Any]:
        async def echo(_context: ToolContext, arguments: dict[str, Any]) -> str:
            self.reached.append(arguments["text"])
            return str(arguments["text"])

        async def sleep(_context: ToolContext, _arguments: dict[str, Any]) -> str:
            await asyncio.sleep(30)
            return "slept"

        return {"echo": echo, "sleep": sleep}

    async def run(self, settings: ModelSettings, tools: dict[str, Tool], folder: Path, limits: Limits) -> None:
        context = tool_context(LocalSandbox(folder, "none", output_limit=1000), 5, 1000)
        async with ModelClient(settings) as model:
            self.agent = Agent(model, tools, context, limits)
            try:
                self.outcome = await self.agent.run([{"role": "user", "content": "go"}])
            except Exception as error:
                self.outcome = error

    @property
    def results(self) -> list[str]:
        return [message["content"] for message in self.agent.messages if message["role"] == "tool"]


DEFAULT_LIMITS: dict[str, Any] = {"max_turns": 8, "prompt_timeout_s": 30, "max_tokens": None}


@pytest.fixture
def play(server: ScriptedServer, tmp_path: Path) -> Any:
    def run(*replies: dict[str, Any], faults: list[dict[str, Any]] | None = None, **limits: Any) -> Play:
        rule = {"regex": ".", "replies": list(replies), "faults": faults or []}
        server.control(script={"rules": [rule]}, reset_counters=True)
        return Play(server.base_url, tmp_path, **limits)

    return run


def calls(*made: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"tool_calls": list(made), "reasoning": "hm", **more}


def test_it_works_until_the_model_answers_without_a_call(play: Any) -> None:
    done = play(calls(GOOD), calls(GOOD, GOOD), FINAL)
    assert (done.outcome, done.agent.api_calls, done.reached) == ("finished", 3, ["hi"] * 3)
    roles = [message["role"] for message in done.agent.messages]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "tool", "assistant"]
    assert done.agent.usage.completion_tokens > 0 and done.agent.model_seconds > 0


def test_tokens_are_summed_over_calls(server: ScriptedServer, play: Any) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 7}, "cost": 0.5}
    done = play(calls(GOOD, usage=usage), {**FINAL, "usage": usage})
    assert done.agent.usage == Usage(200, 20, done.agent.usage.reasoning_tokens, 14, 1.0)


def test_every_call_has_one_result_with_its_id_in_the_calls_order(play: Any) -> None:
    done = play(calls({**GOOD, "id": "x"}, {**UNKNOWN, "id": "y"}, {**GOOD, "id": "z"}), FINAL)
    asked = [call["id"] for call in done.agent.messages[1]["tool_calls"]]
    answered = [message["tool_call_id"] for message in done.agent.messages if message["role"] == "tool"]
    assert asked == answered == ["x", "y", "z"]


def test_turns_run_out(play: Any) -> None:
    done = play(calls(GOOD), max_turns=3)
    assert (done.outcome, done.agent.api_calls, len(done.reached)) == ("max_turns", 3, 3)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (UNKNOWN, "there is no tool 'ecco'; the tools are echo, sleep"),
        ({"name": "", "arguments": {}}, "there is no tool ''"),
        ({"name": "echo", "arguments": "{'a': 1}"}, "the arguments of echo are not a JSON object"),
        ({"name": "echo", "arguments": ""}, "the arguments of echo are not a JSON object"),
        ({**GOOD, "id": ""}, "the call has no id"),
        ({**GOOD, "id": None}, "the call has no id"),
    ],
)
def test_a_call_that_cannot_be_executed_is_answered_and_the_model_may_mend_it(play: Any, bad: Any, said: str) -> None:
    done = play(calls(bad), calls(GOOD), FINAL)
    assert done.outcome == "finished" and done.reached == ["hi"]
    assert done.results[0].startswith(f"Error: {said}") and done.results[1] == "hi"
    assert [outcome.success for outcome in done.agent.outcomes] == [False, True]


def test_calls_with_one_id_are_not_executed_and_do_not_count_as_success(play: Any) -> None:
    done = play(calls({**GOOD, "id": "a"}, {**GOOD, "id": "a"}), FINAL)
    assert done.outcome == "finished" and done.reached == []
    assert len({message["tool_call_id"] for message in done.agent.messages[2:4]}) == 2
    assert tool_stats(["echo"], done.agent.outcomes) == {"echo": ToolStat(2, 0, 2)}


def test_an_id_that_comes_back_in_a_later_turn_is_executed_under_a_new_one(play: Any) -> None:
    done = play(calls({**GOOD, "id": "call_0"}), calls({**GOOD, "id": "call_0"}), FINAL)
    assert done.reached == ["hi", "hi"]
    assert [m["tool_call_id"] for m in done.agent.messages if m["role"] == "tool"] == ["call_0", "call_0_2"]


def test_three_replies_of_nothing_but_bad_calls_end_it(play: Any) -> None:
    done = play(calls(UNKNOWN, UNKNOWN))
    assert (done.outcome, done.agent.api_calls) == ("invalid_tool_calls", 3)
    assert len(done.results) == 6, "every call is answered to the last"


def test_one_good_call_between_bad_ones_is_patience_anew(play: Any) -> None:
    done = play(calls(UNKNOWN), calls(UNKNOWN), calls(UNKNOWN, GOOD), calls(UNKNOWN), calls(UNKNOWN), FINAL)
    assert (done.outcome, done.agent.api_calls) == ("finished", 6)


def test_what_the_token_limit_cut_off_is_not_executed(play: Any) -> None:
    done = play(calls(GOOD, finish_reason="length"), calls(GOOD), FINAL)
    assert done.outcome == "finished" and done.reached == ["hi"]
    assert "cut off by the token limit" in done.results[0]


@pytest.mark.parametrize(
    ("finish", "outcome"),
    [("length", "output_truncated"), ("content_filter", "content_filter"), ("stop", "finished"), ("odd", "finished")],
)
def test_how_a_reply_without_calls_ends(play: Any, finish: str, outcome: str) -> None:
    assert play({**FINAL, "finish_reason": finish}).outcome == outcome


def test_a_reply_that_is_cut_off_in_its_thoughts_is_kept(play: Any) -> None:
    done = play({"reasoning": "I was still", "finish_reason": "length"})
    assert done.outcome == "output_truncated" and done.agent.messages[-1]["reasoning_content"] == "I was still"


OVERFLOW = {"error": {"message": "maximum context length is 8 tokens", "code": "context_length_exceeded"}}
FILTERED = {"error": {"message": "no", "code": "content_filter"}}


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ({"status": 400, "body": OVERFLOW}, "context_overflow"),
        ({"status": 413, "body": "too large", "content_type": "text/plain"}, "context_overflow"),
        ({"status": 400, "body": FILTERED}, "content_filter"),
    ],
)
@pytest.mark.parametrize("call", [1, 2])
def test_a_conversation_that_cannot_go_on_ends_with_what_there_is(
    play: Any, fault: Any, outcome: str, call: int
) -> None:
    done = play(calls(GOOD), FINAL, faults=[{"kind": "answer", "on_calls": [call], **fault}])
    assert (done.outcome, done.agent.api_calls, len(done.reached)) == (outcome, call - 1, call - 1)


def test_tokens_run_out(play: Any) -> None:
    usage = {"prompt_tokens": 60, "completion_tokens": 40}
    done = play(calls(GOOD, usage=usage), max_tokens=250)
    assert (done.outcome, done.agent.api_calls) == ("token_limit", 3)
    assert play({**FINAL, "usage": usage}, max_tokens=50).outcome == "finished", "an answer is an answer"


def test_time_that_runs_out_in_a_tool_ends_with_a_result_for_each_call(play: Any) -> None:
    began = time.monotonic()
    done = play(calls(SLOW, GOOD), prompt_timeout_s=0.6)
    assert done.outcome == "time_limit" and time.monotonic() - began < 5
    assert len(done.results) == 2 and done.results[0] == "Error: the time for this task is over"


def test_time_that_runs_out_in_the_model_is_a_row_once_the_model_has_answered(play: Any) -> None:
    done = play(calls(GOOD), FINAL, faults=[{"kind": "silent", "on_calls": [2]}], prompt_timeout_s=0.6)
    assert (done.outcome, done.agent.api_calls, done.results) == ("time_limit", 1, ["hi"])


def test_time_that_runs_out_before_any_answer_is_a_failed_attempt(play: Any) -> None:
    done = play(FINAL, faults=[{"kind": "silent"}], prompt_timeout_s=0.4)
    assert isinstance(done.outcome, PromptError) and done.outcome.kind == "deadline"


def test_an_outage_in_mid_conversation_is_a_failed_attempt(play: Any) -> None:
    done = play(calls(GOOD), FINAL, faults=[{"kind": "answer", "status": 500, "on_calls": [2]}])
    assert isinstance(done.outcome, PromptError) and done.outcome.kind == "server_error"


def test_no_credit_in_mid_conversation_stops_more_than_the_prompt(play: Any) -> None:
    done = play(calls(GOOD), FINAL, faults=[{"kind": "answer", "status": 402, "on_calls": [2]}])
    assert isinstance(done.outcome, NoCredit)


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content", "reasoning_details"])
def test_reasoning_goes_back_under_the_name_it_came_with(tmp_path: Path, name: str) -> None:
    thought: Any = [{"type": "reasoning.text", "text": "hm"}] if name == "reasoning_details" else "hm"
    call = {"id": "a", "type": "function", "function": {"name": "echo", "arguments": '{"text": "hi"}'}}
    with Recorder({"content": None, name: thought, "tool_calls": [call]}, {"content": "done"}) as recorder:
        assert Play(recorder.base_url, tmp_path).outcome == "finished"
    [_, (_, second)] = recorder.requests
    sent = second["messages"][1]
    assert sent[name] == thought and sent["tool_calls"] == [call]
    assert {"reasoning", "reasoning_content", "reasoning_details"} & sent.keys() == {name}
    assert [tool["function"]["name"] for tool in second["tools"]] == ["echo", "sleep"]
