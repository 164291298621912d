"""Compares two runs on the prompts that both finished."""

from typing import NamedTuple

import numpy as np

from trajectile.comparison.intervals import Estimate, Floats, mcnemar, paired_difference, percentiles, wilson
from trajectile.comparison.pairs import ROW_NUMBERS, Places, RunRows, pair
from trajectile.comparison.resampling import Drawn, Sums, affordable, resample
from trajectile.errors import UserError
from trajectile.report.viewer import Names
from trajectile.run_folder.paths import RunFolder

PROPORTIONS = (("completed", "completed"), ("with reasoning", "reasoned"))
RATIOS = (
    ("assistant turns with reasoning", "reasoned_turns", "turns", True),
    ("tool calls that failed", "failed_calls", "calls", True),
    ("assistant turns a prompt", "turns", "rows", False),
    ("tool calls a prompt", "calls", "rows", False),
    ("prompt tokens a prompt", "prompt_tokens", "rows", False),
    ("completion tokens a prompt", "completion_tokens", "rows", False),
    ("cost a prompt", "cost", "rows", False),
    ("cost a completed prompt", "cost", "completed", False),
    ("seconds a prompt", "seconds", "rows", False),
)


class Line(NamedTuple):
    """One quantity in both runs; `difference` is B - A, and `p` is there for a proportion of prompts."""

    name: str
    is_share: bool
    a: Estimate
    b: Estimate
    difference: Estimate
    p: float | None = None


class ToolLine(NamedTuple):
    """One tool: its calls in both runs, and the share of them that failed."""

    calls: tuple[int, int]
    failed: Line


class Method(NamedTuple):
    """How intervals are made."""

    confidence: float
    resamples: int
    seed: int


class Runs(NamedTuple):
    """The rows of two runs; tools and ends are numbered alike in both."""

    a: RunRows
    b: RunRows
    tools: list[str]
    ends: list[str]


class Comparison(NamedTuple):
    """What two runs have in common and where they differ; `pairs` are row numbers in A and in B."""

    pairs: tuple[Places, Places]
    alone: tuple[int, int]
    lines: list[Line]
    tools: list[ToolLine]
    ends: list[tuple[str, int, int]]
    method: Method


def read_runs(a: RunFolder, b: RunFolder) -> Runs:
    """Read the finished rows of both runs."""
    tools, ends = Names(), Names()
    rows = RunRows(a, tools, ends), RunRows(b, tools, ends)
    return Runs(*rows, list(tools.numbers), list(ends.numbers))


def compare(runs: Runs, method: Method) -> Comparison:
    """Compare the rows that pair up; UserError where none do."""
    pairs = pair(runs.a, runs.b)
    count = len(pairs[0])
    if not count:
        raise UserError("the runs have no finished prompt in common: prompts are paired by their exact text")
    method = method._replace(resamples=affordable(method.resamples, count))
    comparer = _Comparer(runs, pairs, method)
    return Comparison(
        pairs,
        (len(runs.a) - count, len(runs.b) - count),
        [comparer.proportion(*entry) for entry in PROPORTIONS] + [comparer.ratio(*entry) for entry in RATIOS],
        comparer.tools(runs.tools),
        _ends(runs, pairs),
        method,
    )


class _Comparer:
    """Computes lines from the paired rows and their resamples."""

    def __init__(self, runs: Runs, pairs: tuple[Places, Places], method: Method) -> None:
        self._confidence = method.confidence
        self._rows = runs.a.numbers()[pairs[0]], runs.b.numbers()[pairs[1]]
        sums = Sums(runs.a, pairs[0], len(runs.tools)), Sums(runs.b, pairs[1], len(runs.tools))
        self._all = sums[0].all(), sums[1].all()
        self._drawn = resample(*sums, method.resamples, method.seed)

    def proportion(self, name: str, column: str) -> Line:
        """Compare a share of prompts: score intervals and McNemar's test."""
        a, b = (rows[:, ROW_NUMBERS.index(column)] > 0 for rows in self._rows)
        only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
        share_a, share_b = (wilson(int(found.sum()), len(found), self._confidence) for found in (a, b))
        counts = int((a & b).sum()), only_a, only_b, int((~a & ~b).sum())
        difference = paired_difference(*counts, self._confidence)
        return Line(name, True, share_a, share_b, difference, mcnemar(only_a, only_b))

    def ratio(self, name: str, over: str, under: str, is_share: bool) -> Line:
        """Compare a ratio of two sums."""
        (a, b), (all_a, all_b) = (
            tuple(_divided(drawn.column(over), drawn.column(under)) for drawn in both)
            for both in (self._drawn, self._all)
        )
        return self._line(name, is_share, (float(all_a), float(all_b)), (a, b))

    def tools(self, names: list[str]) -> list[ToolLine]:
        """Compare each tool that was called, the one with the most calls first."""
        calls = [drawn.calls for drawn in self._all]
        order = np.argsort(-(calls[0] + calls[1]), kind="stable")
        return [self._tool(n, names[n]) for n in order.tolist() if calls[0][n] + calls[1][n]]

    def _tool(self, number: int, name: str) -> ToolLine:
        def failed(drawn: Drawn) -> Floats:
            return _divided(drawn.failed[..., number], drawn.calls[..., number])

        values = float(failed(self._all[0])), float(failed(self._all[1]))
        line = self._line(name, True, values, (failed(self._drawn[0]), failed(self._drawn[1])))
        return ToolLine((int(self._all[0].calls[number]), int(self._all[1].calls[number])), line)

    def _line(self, name: str, is_share: bool, values: tuple[float, float], drawn: tuple[Floats, Floats]) -> Line:
        (a, b), (drawn_a, drawn_b) = values, drawn
        return Line(
            name,
            is_share,
            percentiles(a, drawn_a, self._confidence),
            percentiles(b, drawn_b, self._confidence),
            percentiles(b - a, drawn_b - drawn_a, self._confidence),
        )


def _divided(over: Floats, under: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(over, under)


def _ends(runs: Runs, pairs: tuple[Places, Places]) -> list[tuple[str, int, int]]:
    counts = [
        np.bincount(rows.ends()[own], minlength=len(runs.ends)).tolist()
        for rows, own in zip((runs.a, runs.b), pairs, strict=True)
    ]
    ends = zip(runs.ends, *counts, strict=True)
    return sorted((end for end in ends if end[1] + end[2]), key=lambda end: (-end[1] - end[2], end[0]))
