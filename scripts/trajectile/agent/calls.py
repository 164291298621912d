"""Tool calls as models write them: which can be executed, and what comes back."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from trajectile.rows import ToolCall
from trajectile.tools import calling
from trajectile.tools.tool import Tool, ToolContext, is_failure

CUT_OFF = "the call was cut off by the token limit; make it shorter"


class CheckedCall(NamedTuple):
    """A call with an id of its own in the conversation, and why it must not be executed ("" where it may)."""

    call: ToolCall
    problem: str


class Outcome(NamedTuple):
    """The text that answers a call; `executed` is False where it never reached a tool."""

    name: str
    result: str
    executed: bool
    success: bool


def ids_of_calls(messages: Iterable[dict[str, Any]]) -> set[str]:
    """Return the ids of all calls in messages."""
    return {call["id"] for message in messages for call in message.get("tool_calls") or ()}


def check_calls(calls: Iterable[ToolCall], used: set[str], *, cut_off: bool) -> list[CheckedCall]:
    """Give each call an id that is not in `used` (and add it there), and find missing, repeated and cut-off ones."""
    calls = list(calls)
    counts = Counter(call.id for call in calls)
    return [_check(call, counts[call.id], used, cut_off) for call in calls]


def _check(call: ToolCall, count: int, used: set[str], cut_off: bool) -> CheckedCall:
    problem = ""
    if cut_off:
        problem = CUT_OFF
    elif not call.id:
        problem = "the call has no id"
    elif count > 1:
        problem = f"{count} calls have the id {call.id!r}; each needs its own"
    return CheckedCall(ToolCall(_unused(call.id or "call", used), call.name, call.arguments), problem)


def _unused(wanted: str, used: set[str]) -> str:
    unique, number = wanted, 1
    while unique in used:
        number += 1
        unique = f"{wanted}_{number}"
    used.add(unique)
    return unique


def wire_calls(checked: Iterable[CheckedCall]) -> list[dict[str, Any]]:
    """Return the calls as an assistant message carries them."""
    return [wire_call(item.call) for item in checked]


def wire_call(call: ToolCall) -> dict[str, Any]:
    """Return one call as an assistant message carries it."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def parse_arguments(text: str) -> dict[str, Any] | None:
    """Return the arguments of a call, None where they are not a JSON object."""
    try:
        arguments = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return arguments if isinstance(arguments, dict) else None


async def perform(checked: CheckedCall, tools: Mapping[str, Tool], context: ToolContext) -> Outcome:
    """Execute a call, or answer it with the reason why it cannot be executed."""
    name, arguments = checked.call.name, parse_arguments(checked.call.arguments)
    problem = checked.problem
    if not problem and name not in tools:
        problem = f"there is no tool {name!r}; the tools are {', '.join(tools)}"
    if not problem and arguments is None:
        problem = f"the arguments of {name} are not a JSON object"
    if problem or arguments is None:
        return Outcome(name, f"Error: {problem}", executed=False, success=False)
    result = await calling.call(tools[name], context, arguments)
    return Outcome(name, result, executed=True, success=not is_failure(result))
