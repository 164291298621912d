"""Confidence intervals and tests for a comparison of two runs."""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """A number with the interval it lies in; all NaN where there is nothing to go by."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


def wilson(successes: int, total: int, confidence: float) -> Estimate:
    """Return a proportion with its Wilson score interval."""
    if not total:
        return Estimate(math.nan, math.nan, math.nan)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, spread = successes / total, z * z / total
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / total + spread / total / 4)
    return Estimate(share, max(0.0, middle - half), min(1.0, middle + half))


def paired_difference(both: int, only_a: int, only_b: int, neither: int, confidence: float) -> Estimate:
    """Return the difference B - A of two paired proportions with Newcombe's score interval (1998, method 10).

    The four counts are of pairs, of which there is at least one.
    """
    total = both + only_a + only_b + neither
    a, b = wilson(both + only_a, total, confidence), wilson(both + only_b, total, confidence)
    correlation = _correlation(both, only_a, only_b, neither)

    def reach(down: float, up: float) -> float:
        return math.sqrt(max(0.0, down**2 - 2 * correlation * down * up + up**2))

    value = (only_b - only_a) / total
    return Estimate(
        value,
        value - reach(b.value - b.low, a.high - a.value),
        value + reach(b.high - b.value, a.value - a.low),
    )


def _correlation(both: int, only_a: int, only_b: int, neither: int) -> float:
    """Return phi of a table of pairs, corrected for continuity where it is positive."""
    total = both + only_a + only_b + neither
    product: float = both * neither - only_a * only_b
    if product > 0:
        product = max(product - total / 2, 0)
    margins = (both + only_a) * (only_b + neither) * (both + only_b) * (only_a + neither)
    return product / math.sqrt(margins) if margins else 0.0


def mcnemar(only_a: int, only_b: int) -> float:
    """Return the exact two-sided p-value of McNemar's test: how likely chance alone makes so uneven a change."""
    changed, fewer = only_a + only_b, min(only_a, only_b)
    logs = (
        math.lgamma(changed + 1) - math.lgamma(n + 1) - math.lgamma(changed - n + 1) - changed * math.log(2)
        for n in range(fewer + 1)
    )
    return min(1.0, 2 * math.fsum(map(math.exp, logs)))


def percentiles(value: float, resampled: Floats, confidence: float) -> Estimate:
    """Return a number with the percentile interval of its resamples; those that are not numbers are left out."""
    known = resampled[np.isfinite(resampled)]
    if not len(known) or not math.isfinite(value):
        return Estimate(value, math.nan, math.nan)
    low, high = np.percentile(known, [50 * (1 - confidence), 50 * (1 + confidence)])
    return Estimate(value, float(low), float(high))
