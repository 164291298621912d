"""How a comparison is written, in the terminal and on its page."""

import math
from typing import Any

import orjson

from trajectile.comparison.comparing import Comparison, Line
from trajectile.comparison.intervals import Estimate
from trajectile.report.numbers import counted, short

FEW = 20


def estimate(value: Estimate, is_share: bool) -> str:
    """Write a number and its interval."""
    if not math.isfinite(value.value):
        return "–"
    if not math.isfinite(value.low):
        return amount(value.value, is_share)
    return f"{amount(value.value, is_share)} [{amount(value.low, is_share)}, {amount(value.high, is_share)}]"


def difference(line: Line) -> str:
    """Write B - A with its sign; shares differ by percentage points."""
    if not math.isfinite(line.difference.value):
        return "–"
    value, low, high = (_signed(number, line.is_share) for number in line.difference)
    return f"{value} [{low}, {high}]"


def amount(number: float, is_share: bool) -> str:
    return f"{number:.1%}" if is_share else short(number)


def _signed(number: float, is_share: bool) -> str:
    text = f"{100 * number:.1f}" if is_share else short(number)
    return text if text.startswith("-") or not number else f"+{text}"


def chance(p: float | None) -> str:
    """Write a p-value."""
    if p is None:
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def setting(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def heading(comparison: Comparison) -> str:
    pairs, (a, b) = len(comparison.pairs[0]), comparison.alone
    return f"{counted(pairs, 'prompt')} finished in both runs; {a:,} only in A, {b:,} only in B, left out"


def method(comparison: Comparison) -> list[str]:
    """Say how the intervals were made, and warn where they are not to be trusted."""
    how = comparison.method
    lines = [
        "The difference is B minus A, for shares in percentage points."
        f" Intervals are {how.confidence:.0%}: for shares of prompts Wilson's and, of their difference, Newcombe's for"
        " pairs; for all else percentiles of a paired bootstrap over prompts"
        f" ({how.resamples} resamples, seed {how.seed})."
        " p is McNemar's exact test. Of many lines, some stand out by chance alone.",
    ]
    if len(comparison.pairs[0]) < FEW:
        lines.append(f"With under {FEW} prompts the bootstrap intervals are too narrow: do not rely on them.")
    return lines
