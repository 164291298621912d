"""Sums over the finished rows of a run."""

from array import array
from collections import Counter

import msgspec
import numpy as np

from trajectile.results.shape import ReasoningStatistics, Tokens, ToolStatistics
from trajectile.rows import ReasoningStats, ToolStat, Trajectory, Usage

PERCENTILES = (50, 90, 99)
RATE_DIGITS = 4


class Totals:
    """Sums over the rows that are added."""

    def __init__(self, offered: list[str]) -> None:
        self.completed = self.partial = self.api_calls = self.trimmed_results = 0
        self.usage, self.reasoning = Usage(), ReasoningStats()
        self.ends = Counter[str]()
        self._tools = {name: ToolStat() for name in offered}
        self._latencies, self._turns = array("f"), array("I")

    def add(self, row: Trajectory) -> None:
        self.completed += row.completed
        self.partial += row.partial
        self.api_calls += row.api_calls
        self.trimmed_results += row.metadata.trimmed_results
        self.ends[row.end_reason] += 1
        _add(self.usage, row.usage)
        _add(self.reasoning, row.reasoning_stats)
        for name, stat in row.tool_stats.items():
            if stat.count:
                _add(self._tools.setdefault(name, ToolStat()), stat)
        self._latencies.append(row.metadata.duration_seconds)
        self._turns.append(row.reasoning_stats.total_assistant_turns)

    def tools(self) -> dict[str, ToolStatistics]:
        return {name: _with_rates(self._tools[name]) for name in sorted(self._tools)}

    def reasoning_statistics(self) -> ReasoningStatistics:
        total, reasoned = self.reasoning.total_assistant_turns, self.reasoning.turns_with_reasoning
        return ReasoningStatistics(total, reasoned, self.reasoning.turns_without_reasoning, rate(reasoned, total))

    def tokens(self) -> Tokens:
        usage = self.usage
        return Tokens(usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens, usage.cached_tokens)

    def latencies(self) -> dict[str, float]:
        return _percentiles(self._latencies)

    def turns(self) -> dict[str, float]:
        return _percentiles(self._turns)


def _add(total: msgspec.Struct, part: msgspec.Struct) -> None:
    for name in total.__struct_fields__:
        setattr(total, name, getattr(total, name) + getattr(part, name))


def _with_rates(stat: ToolStat) -> ToolStatistics:
    count, success, failure = stat.count, stat.success, stat.failure
    return ToolStatistics(count, success, failure, rate(success, count), rate(failure, count))


def rate(part: int, whole: int) -> float:
    """Return part / whole, 0 where there is no whole."""
    return round(part / whole, RATE_DIGITS) if whole else 0.0


def _percentiles(values: "array[float] | array[int]") -> dict[str, float]:
    found = np.percentile(np.asarray(values), PERCENTILES) if values else [0.0] * len(PERCENTILES)
    return {f"p{n}": round(float(value), 3) for n, value in zip(PERCENTILES, found, strict=True)}
