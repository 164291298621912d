"""A trajectory on its way into an export: its turns, which of them were given, and what belongs together."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, NamedTuple

from trajectile.agent.calls import parse_arguments
from trajectile.exports.run import Tools
from trajectile.rows import ToolCall, Trajectory, Turn


class LeftOut(Exception):
    """A row that a format cannot hold or the options exclude; the argument is the reason, a word for counting."""

    @property
    def reason(self) -> str:
        return str(self.args[0])


class Example(NamedTuple):
    """One row to export. The first `given` turns came with the prompt; the model made the others.

    `row.conversations` is the conversation as it was recorded; exports write `turns`.
    """

    row: Trajectory
    turns: list[Turn]
    given: int
    tools: Tools


class Block(NamedTuple):
    """A turn with the tool results that follow it."""

    turn: Turn
    results: list[Turn]
    given: bool


def example_of(row: Trajectory, tools: Tools) -> Example:
    """Take a row apart; calls and results of given turns get the ids and names that they lack."""
    _name_results(row.conversations)
    return Example(row, row.conversations, row.given, tools)


def _name_results(turns: list[Turn]) -> None:
    waiting: list[ToolCall] = []
    for number, turn in enumerate(turns):
        if turn.from_ == "tool":
            _name_result(turn, waiting)
        else:
            waiting = list(turn.tool_calls)
            for place, call in enumerate(waiting):
                call.id = call.id or f"call_{number}_{place}"


def _name_result(turn: Turn, waiting: list[ToolCall]) -> None:
    """Fill in the id and name of a result: of the call with its id, else of the first one without a result."""
    place = next((n for n, call in enumerate(waiting) if turn.tool_call_id in ("", call.id)), None)
    if place is not None:
        call = waiting.pop(place)
        turn.tool_call_id, turn.name = call.id, turn.name or call.name


def without_system(example: Example) -> tuple[str, Example]:
    """Return the text of the system turns at the start, joined as the model saw them, and the rest."""
    opening = list(takewhile(lambda turn: turn.from_ == "system", example.turns))
    rest = example._replace(turns=example.turns[len(opening) :], given=example.given - len(opening))
    return "\n\n".join(turn.value for turn in opening), rest


def blocks(example: Example) -> Iterator[Block]:
    """Group each turn with the results after it; results without a turn before them follow an empty system turn."""
    block = Block(Turn("system"), [], True)
    for number, turn in enumerate(example.turns):
        if turn.from_ == "tool":
            block.results.append(turn)
            continue
        if number:
            yield block
        block = Block(turn, [], number < example.given)
    yield block


def require_trainable(example: Example) -> None:
    """LeftOut where there is nothing to learn."""
    if not any(turn.from_ == "gpt" for turn in example.turns[example.given :]):
        raise LeftOut("no_assistant_turn")


def object_of(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments; LeftOut where they are not a JSON object."""
    arguments = parse_arguments(call.arguments)
    if arguments is None:
        raise LeftOut("arguments_not_an_object")
    return arguments
