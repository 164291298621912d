"""The pictures of the report: what each shows, and how it is said in words."""

from collections.abc import Callable

from trajectile.report.axes import logarithmic, over_time, summed_up, whole_numbers
from trajectile.report.charts import BLUE, KINDS, ORANGE, Bar, bars, message, panels
from trajectile.report.numbers import counted, percent, short
from trajectile.report.observed import SHARES, Observed
from trajectile.report.timeline import span_of
from trajectile.results.shape import Statistics

OUTCOMES = [("succeeded", BLUE), ("failed", ORANGE)]
NO_ROWS = "no prompt has finished yet"


def tools(statistics: Statistics, _: Observed) -> str:
    """Success and failure of the calls of each tool."""
    used = sorted(
        ((name, tool) for name, tool in statistics.tool_statistics.items() if tool.count),
        key=lambda item: (-item[1].count, item[0]),
    )
    title = "Tool calls"
    if not used:
        return message(title, "no tool was called")
    rows = [
        Bar(name, [tool.success, tool.failure], f"{tool.count:,}, {percent(tool.failure, tool.count)} failed")
        for name, tool in used
    ]
    calls, failed = sum(tool.count for _, tool in used), sum(tool.failure for _, tool in used)
    unused = len(statistics.tool_statistics) - len(used)
    subtitle = f"{counted(calls, 'call')} of {counted(len(used), 'tool')}, {percent(failed, calls)} failed"
    if unused:
        subtitle += f"; {counted(unused, 'tool')} on offer never called"
    return bars(title, subtitle, rows, OUTCOMES)


def turns(statistics: Statistics, observed: Observed) -> str:
    """Assistant turns a trajectory."""
    title = "Assistant turns a trajectory"
    if not observed.rows:
        return message(title, NO_ROWS)
    total = statistics.reasoning_statistics.total_assistant_turns
    many = counted(observed.rows, "trajectory", "trajectories")
    subtitle = f"{counted(total, 'turn')} in {many}, {total / observed.rows:.1f} on average"
    return panels(title, subtitle, [whole_numbers("trajectories", observed.turns)])


def tokens(_: Statistics, observed: Observed) -> str:
    """Tokens a trajectory, read and written."""
    title = "Tokens a trajectory"
    if not observed.prompt_tokens.total + observed.completion_tokens.total:
        return message(title, "the server reported no tokens")
    parts = [
        logarithmic("trajectories by tokens read", observed.prompt_tokens, "prompt tokens"),
        logarithmic("trajectories by tokens written", observed.completion_tokens, "completion tokens"),
    ]
    return panels(title, "summed over the calls of a trajectory; logarithmic scale", parts)


def reasoning(statistics: Statistics, observed: Observed) -> str:
    """How much of each trajectory's assistant turns carries reasoning."""
    title = "Reasoning coverage"
    if not observed.rows:
        return message(title, NO_ROWS)
    rows = [
        Bar(share, [count], counted(count, "trajectory", "trajectories"))
        for share in SHARES[::-1]
        for count in [observed.reasoning[share]]
    ]
    found = statistics.reasoning_statistics
    coverage, turns = percent(found.turns_with_reasoning, found.total_assistant_turns), found.total_assistant_turns
    subtitle = (
        f"{coverage} of {counted(turns, 'assistant turn')} have reasoning; by trajectory, this share of its turns:"
    )
    return bars(title, subtitle, rows, [("trajectories", BLUE)])


def latency(_: Statistics, observed: Observed) -> str:
    """Seconds a prompt took, in all and in the model alone."""
    title = "Time a prompt"
    if not observed.rows:
        return message(title, NO_ROWS)
    share = percent(observed.model_seconds.total, observed.seconds.total)
    parts = [
        logarithmic("prompts by time from start to end", observed.seconds, "s"),
        logarithmic("prompts by time spent in model calls", observed.model_seconds, "s"),
    ]
    return panels(title, f"model calls take {share} of the time; logarithmic scale", parts)


def ends(statistics: Statistics, _: Observed) -> str:
    """Why trajectories ended."""
    title, counts = "How trajectories ended", statistics.end_reasons
    total = sum(counts.values())
    if not total:
        return message(title, NO_ROWS)
    legend = [("finished", BLUE), ("cut short", ORANGE)]
    rows = [
        Bar(name, [count, 0] if name == "finished" else [0, count], f"{count:,} ({percent(count, total)})")
        for name, count in sorted(counts.items(), key=lambda item: -item[1])
    ]
    subtitle = f"{statistics.completed:,} of {total:,} trajectories are completed, {statistics.partial:,} are partial"
    return bars(title, subtitle, rows, legend)


def failures(statistics: Statistics, observed: Observed) -> str:
    """Finished prompts and failed attempts over time."""
    title = "Progress and failures over time"
    slots = observed.finished.slots() | observed.failed.slots()
    if not slots:
        return message(title, NO_ROWS)
    span, groups = span_of(slots), _kinds(observed)
    parts = [over_time("prompts finished", observed.finished, [[""]], span)]
    failed = f"{counted(statistics.attempts_failed, 'attempt')} failed" if groups else "no attempt failed"
    subtitle = f"{failed}; {counted(statistics.owed, 'prompt')} owed; times are UTC"
    if groups:
        parts.append(over_time("attempts failed", observed.failed, groups, span)._replace(colours=KINDS))
    names = [group[0] if len(group) == 1 else f"{len(group)} other kinds" for group in groups]
    return panels(title, subtitle, parts, list(zip(names, KINDS, strict=False)))


def _kinds(observed: Observed) -> list[list[str]]:
    """Group the kinds of failure so that there is a colour for each group: the rare ones share the last."""
    kinds, alone = observed.failed.kinds(), len(KINDS) - 1
    return [[kind] for kind in kinds[:alone]] + ([kinds[alone:]] if kinds[alone:] else [])


def cost(statistics: Statistics, observed: Observed) -> str:
    """What the trajectories cost, each and in time."""
    title, costs = "Cost", observed.cost
    if not costs.total:
        return message(title, "the provider named no cost")
    parts = [
        logarithmic("trajectories by their cost", costs, "in the provider's currency"),
        summed_up(over_time("spent so far", observed.spent, [[""]], span_of(observed.spent.slots()))),
    ]
    free = f", {costs.zeros} without a cost" if costs.zeros else ""
    mean = short(costs.total / observed.rows)
    return panels(title, f"{statistics.cost:.4g} in all, {mean} a trajectory{free}; failed attempts not counted", parts)


PICTURES: dict[str, Callable[[Statistics, Observed], str]] = {
    "tools": tools,
    "turns": turns,
    "tokens": tokens,
    "reasoning": reasoning,
    "latency": latency,
    "ends": ends,
    "failures": failures,
    "cost": cost,
}
