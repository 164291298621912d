"""Turns counts into panels: over whole numbers, over a logarithmic scale, over time."""

import math
from collections import Counter
from collections.abc import Callable
from itertools import accumulate

from trajectile.report.charts import Column, Panel
from trajectile.report.histogram import Histogram
from trajectile.report.numbers import log_ticks, nice_step, short
from trajectile.report.timeline import MINUTE, Span, Timeline, clock

QUANTILES = ((0.5, "median"), (0.9, "p90"), (0.99, "p99"))
MARK_GAP = 0.11
MOST_COLUMNS = 60


def whole_numbers(title: str, counts: Counter[int]) -> Panel:
    """Return a column for each whole number, or for each few of them where there are many."""
    first, last = min(counts, default=0), max(counts, default=0)
    wide = max(1, int(nice_step((last - first + 1) / MOST_COLUMNS)))
    start = first // wide * wide
    columns = (last - start) // wide + 1
    merged = Counter[int]()
    for number, count in counts.items():
        merged[(number - start) // wide] += count
    ticked = max(1, math.ceil(columns / 12))
    return Panel(
        title,
        [
            Column(n / columns, (n + 1) / columns, [merged[n]], f"{_range(start + n * wide, wide)}: {merged[n]}")
            for n in range(columns)
        ],
        [((n + 0.5) / columns, _range(start + n * wide, wide)) for n in range(0, columns, ticked)],
    )


def _range(start: int, wide: int) -> str:
    return str(start) if wide == 1 else f"{start}–{start + wide - 1}"


def logarithmic(title: str, histogram: Histogram, unit: str) -> Panel:
    """Return the columns of a histogram with its quantiles marked."""
    bins = histogram.bins()
    if not bins:
        return Panel(title, [], [])
    low, high = bins[0].low, bins[-1].high

    def place(value: float) -> float:
        return math.log(value / low) / math.log(high / low)

    columns = [
        Column(place(b.low), place(b.high), [b.values], f"{short(b.low)} to {short(b.high)} {unit}: {b.values}")
        for b in bins
    ]
    ticks = [(place(tick), short(tick)) for tick in log_ticks(low, high)]
    return Panel(f"{title} ({unit})", columns, ticks, _marks(histogram, place))


def _marks(histogram: Histogram, place: Callable[[float], float]) -> list[tuple[float, str]]:
    """Return the quantiles that do not crowd the one before."""
    marks: list[tuple[float, str]] = []
    for fraction, name in QUANTILES:
        value = histogram.quantile(fraction)
        if value > 0 and (not marks or place(value) - marks[-1][0] > MARK_GAP):
            marks.append((min(1.0, max(0.0, place(value))), f"{name} {short(value)}"))
    return marks


def over_time(title: str, timeline: Timeline, kinds: list[list[str]], span: Span) -> Panel:
    """Return the sums of each step of a span, one part of a column for each group of kinds."""
    groups = [[sum(step) for step in zip(*(timeline.sums(k, span) for k in kind), strict=True)] for kind in kinds]
    columns = [
        _step(span, number, list(amounts), [kind[0] for kind in kinds])
        for number, amounts in enumerate(zip(*groups, strict=True))
    ]
    return Panel(title, columns, _times(span))


def summed_up(panel: Panel) -> Panel:
    """Return a panel whose columns hold what they and all before them held; of columns with one part."""
    totals = accumulate(column.parts[0] for column in panel.columns)
    columns = [
        column._replace(parts=[total], tip=f"{column.tip}, {total:.4g} so far")
        for column, total in zip(panel.columns, totals, strict=True)
    ]
    return panel._replace(columns=columns)


def _step(span: Span, number: int, amounts: list[float], names: list[str]) -> Column:
    left, right = number * span.step, (number + 1) * span.step
    parts = ", ".join(f"{name} {amount:.4g}".strip() for name, amount in zip(names, amounts, strict=True) if amount)
    whole = span.end - span.start
    return Column(left / whole, right / whole, amounts, f"{clock(span.start + left, MINUTE)}: {parts or 0}")


def _times(span: Span) -> list[tuple[float, str]]:
    ticks, step = span.ticks()
    return [((tick - span.start) / (span.end - span.start), clock(tick, step)) for tick in ticks]
