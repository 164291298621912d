import asyncio
from typing import Any

import pytest
from tool_contexts import tool_context
from trajectile.agent.calls import CheckedCall, Outcome, check_calls, parse_arguments, perform, wire_calls
from trajectile.rows import ToolCall
from trajectile.sandbox.local.sandbox import LocalSandbox
from trajectile.tools.tool import Tool, ToolContext, as_json, parameters


def call(id: str = "c1", name: str = "echo", arguments: str = '{"text": "hi"}') -> ToolCall:
    return ToolCall(id, name, arguments)


def check(*calls: ToolCall, used: set[str] | None = None, cut_off: bool = False) -> list[CheckedCall]:
    return check_calls(calls, set() if used is None else used, cut_off=cut_off)


def problems(*calls: ToolCall, **options: Any) -> list[str]:
    return [item.problem for item in check(*calls, **options)]


def test_good_calls_keep_their_ids() -> None:
    used: set[str] = set()
    checked = check(call("a"), call("b"), used=used)
    assert checked == [CheckedCall(call("a"), ""), CheckedCall(call("b"), "")] and used == {"a", "b"}


def test_a_missing_id_is_a_problem_and_gets_one_that_is_free() -> None:
    used: set[str] = set()
    checked = check(call(""), call(""), used=used)
    assert [item.call.id for item in checked] == ["call", "call_2"]
    assert {item.problem for item in checked} == {"the call has no id"}
    assert [item.call.id for item in check(call(""), used=used)] == ["call_3"]


def test_two_calls_with_one_id_are_both_refused_and_told_apart() -> None:
    checked = check(call("same"), call("other"), call("same"))
    assert [item.call.id for item in checked] == ["same", "other", "same_2"]
    assert [bool(item.problem) for item in checked] == [True, False, True]
    assert "2 calls have the id 'same'" in checked[0].problem


def test_an_id_of_an_earlier_turn_is_no_mistake_but_gets_a_new_name() -> None:
    [item] = check(call("call_0"), used={"call_0"})
    assert item == CheckedCall(call("call_0_2"), "")


def test_nothing_of_a_cut_off_reply_is_executed() -> None:
    assert all("cut off by the token limit" in problem for problem in problems(call("a"), call(""), cut_off=True))


def test_the_wire_carries_what_the_model_wrote() -> None:
    [wired] = wire_calls(check(call("a", "odd name", "{'x': 1}")))
    assert wired == {"id": "a", "type": "function", "function": {"name": "odd name", "arguments": "{'x': 1}"}}


@pytest.mark.parametrize(
    "text", ["{'a': 1}", "", "null", "[1]", '"text"', "{", '{"a": 1} {"b": 2}', '{"a": NaN}', '"\\ud800', "\ud800"]
)
def test_what_is_no_json_object_is_not_guessed_at(text: str) -> None:
    assert parse_arguments(text) is None


def test_a_json_object_is_taken_as_it_is() -> None:
    assert parse_arguments(' {"a": [1, null, "\\u2028"]}\n') == {"a": [1, None, "\u2028"]}


@pytest.fixture
def context(tmp_path: Any) -> ToolContext:
    return tool_context(LocalSandbox(tmp_path, "none", output_limit=1000), 5, 1000)


class Tools:
    """A tool that counts what reaches it."""

    def __init__(self) -> None:
        self.reached: list[dict[str, Any]] = []
        schema = parameters(["text"], text={"type": "string"})
        self.by_name = {"echo": Tool("echo", "t", "Echo.", schema, self.echo)}

    async def echo(self, _context: ToolContext, arguments: dict[str, Any]) -> str:
        self.reached.append(arguments)
        return as_json(error="it broke") if arguments["text"] == "break" else str(arguments["text"])


def run(tools: Tools, context: ToolContext, item: CheckedCall) -> Outcome:
    return asyncio.run(perform(item, tools.by_name, context))


def test_a_good_call_is_executed(context: ToolContext) -> None:
    tools = Tools()
    assert run(tools, context, CheckedCall(call(), "")) == Outcome("echo", "hi", executed=True, success=True)
    assert tools.reached == [{"text": "hi"}]


def test_an_error_result_is_executed_and_no_success(context: ToolContext) -> None:
    outcome = run(Tools(), context, CheckedCall(call(arguments='{"text": "break"}'), ""))
    assert (outcome.executed, outcome.success) == (True, False)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (CheckedCall(call(name="ecco"), ""), "there is no tool 'ecco'; the tools are echo"),
        (CheckedCall(call(name=""), ""), "there is no tool ''"),
        (CheckedCall(call(arguments="{'text': 'hi'}"), ""), "the arguments of echo are not a JSON object"),
        (CheckedCall(call(arguments=""), ""), "the arguments of echo are not a JSON object"),
        (CheckedCall(call(), "the call has no id"), "the call has no id"),
        (CheckedCall(call(name="ecco"), "the call has no id"), "the call has no id"),
    ],
)
def test_what_cannot_be_executed_reaches_no_tool(context: ToolContext, item: CheckedCall, said: str) -> None:
    tools = Tools()
    outcome = run(tools, context, item)
    assert outcome.result.startswith(f"Error: {said}") and not outcome.executed and not outcome.success
    assert tools.reached == []


@pytest.mark.parametrize("arguments", ["{}", '{"text": 1}', '{"text": "a", "more": 1}'])
def test_arguments_that_the_tool_does_not_take_reach_no_handler(context: ToolContext, arguments: str) -> None:
    tools = Tools()
    outcome = run(tools, context, CheckedCall(call(arguments=arguments), ""))
    assert "Wrong arguments for echo" in outcome.result and not outcome.success and tools.reached == []
