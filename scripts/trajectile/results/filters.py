"""The quality filter: which finished rows are not training data, and why."""

from collections.abc import Container, Iterable, Iterator

import msgspec

from trajectile.results.sources import FinishedRows, offset_of
from trajectile.rows import Trajectory

NO_REASONING = "no_reasoning"
UNKNOWN_TOOL = "unknown_tool"


class Discard(msgspec.Struct):
    """A finished row that the filter took out; `file` (in the run folder) and `offset` say where it lies."""

    prompt_index: int
    prompt_key: str
    ordinal: int
    batch_num: int
    reasons: list[str]
    file: str
    offset: int


DISCARD = msgspec.json.Decoder(Discard)


def reasoning_is_required(choice: str, reasoning_disabled: bool) -> bool:
    """Resolve `require_reasoning`: `auto` asks for reasoning unless the run disabled it."""
    return choice == "true" or (choice == "auto" and not reasoning_disabled)


def discards(rows: FinishedRows, tools: Container[str], *, require_reasoning: bool) -> Iterator[Discard]:
    """Yield what the filter takes out of `rows`, in their order; `tools` are the names of the registry."""
    for row, place, _ in rows:
        if reasons := list(reasons_against(row, tools, require_reasoning=require_reasoning)):
            yield Discard(
                row.prompt_index,
                row.prompt_key,
                row.metadata.ordinal,
                row.metadata.batch_num,
                reasons,
                rows.name(place),
                offset_of(place),
            )


def reasons_against(row: Trajectory, tools: Container[str], *, require_reasoning: bool) -> Iterator[str]:
    """Yield `no_reasoning`, and `unknown_tool: <name>` for each name outside the registry that the model called."""
    if require_reasoning and not row.reasoning_stats.turns_with_reasoning:
        yield NO_REASONING
    called = (call.name for turn in row.conversations[row.given :] for call in turn.tool_calls)
    for name in dict.fromkeys(called):
        if name not in tools:
            yield f"{UNKNOWN_TOOL}: {name}"


def reason_words(reasons: Iterable[str]) -> list[str]:
    """Return the reasons of one row without their details, each once, for counting."""
    return list(dict.fromkeys(reason.partition(":")[0] for reason in reasons))
