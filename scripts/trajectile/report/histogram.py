"""Counts of values on a logarithmic scale: any number of rows in a few hundred numbers."""

import math
from collections import Counter
from typing import NamedTuple

BINS_A_DECADE = 40  # a value is known to 6 %
MERGES = (1, 2, 4, 5, 8, 10, 20, 40)


class Bin(NamedTuple):
    """How many `values` lie in [low, high)."""

    low: float
    high: float
    values: int


class Histogram:
    """Counts the values that are added; those that are not positive in `zeros`."""

    def __init__(self) -> None:
        self.zeros = 0
        self.total = 0.0
        self._counts = Counter[int]()

    def add(self, value: float) -> None:
        self.total += value
        if value > 0:
            self._counts[math.floor(math.log10(value) * BINS_A_DECADE)] += 1
        else:
            self.zeros += 1

    def __len__(self) -> int:
        return self.zeros + self._counts.total()

    def quantile(self, fraction: float) -> float:
        """Return the value below which `fraction` of all lie, to the width of a bin; 0 where there are none."""
        left = fraction * len(self) - self.zeros
        for number in sorted(self._counts):
            left -= self._counts[number]
            if left <= 0:
                return _edge(number + 0.5) if fraction * len(self) > self.zeros else 0.0
        return 0.0

    def bins(self, most: int = 32) -> list[Bin]:
        """Return at most `most` bins of equal width on the scale that hold all positive values, empty ones too."""
        if not self._counts:
            return []
        first, last = min(self._counts), max(self._counts)
        wide = next((n for n in MERGES if last // n - first // n < most), (last - first) // (most - 1) + 1)
        merged = Counter[int]()
        for number, count in self._counts.items():
            merged[number // wide] += count
        return [Bin(_edge(n * wide), _edge((n + 1) * wide), merged[n]) for n in range(first // wide, last // wide + 1)]


def _edge(number: float) -> float:
    return float(10 ** (number / BINS_A_DECADE))
