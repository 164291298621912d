"""The paired bootstrap: prompts are drawn again with replacement, the same ones in both runs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajectile.comparison.intervals import Floats
from trajectile.comparison.pairs import ROW_NUMBERS, Places, RunRows

MOST_DRAWS = 40_000_000
FEWEST_RESAMPLES = 200


class Drawn(NamedTuple):
    """Sums over drawn prompts: of each column of ROW_NUMBERS, and each tool's calls and failed calls."""

    columns: Floats
    calls: Floats
    failed: Floats

    def column(self, name: str) -> Floats:
        return self.columns[..., ROW_NUMBERS.index(name)]


class Sums:
    """Sums over the paired rows of one run, each row as often as it was drawn."""

    def __init__(self, rows: RunRows, paired: Places, tools: int) -> None:
        self.count = len(paired)
        self._numbers = rows.numbers()[paired].astype(float)
        self._use = rows.tool_use(paired)
        self._tools = tools

    def of(self, times: NDArray[np.int64]) -> Drawn:
        """Return the sums where row n counts `times[n]` times."""
        use, weights = self._use, times[self._use.row]
        return Drawn(
            times @ self._numbers,
            np.bincount(use.tool, weights * use.calls, self._tools).astype(float),
            np.bincount(use.tool, weights * use.failed, self._tools).astype(float),
        )

    def all(self) -> Drawn:
        return self.of(np.ones(self.count, np.int64))


def resample(a: Sums, b: Sums, resamples: int, seed: int) -> tuple[Drawn, Drawn]:
    """Draw as many prompts as there are, `resamples` times; the sums have a row for each time."""
    random = np.random.default_rng(seed)
    drawn: tuple[list[Drawn], list[Drawn]] = ([], [])
    for _ in range(resamples):
        times = np.bincount(random.integers(a.count, size=a.count), minlength=a.count)
        for kept, sums in zip(drawn, (a, b), strict=True):
            kept.append(sums.of(times))
    return _stacked(drawn[0]), _stacked(drawn[1])


def affordable(resamples: int, count: int) -> int:
    """Return fewer resamples where there are many prompts: intervals need less help then."""
    return min(resamples, max(FEWEST_RESAMPLES, MOST_DRAWS // count))


def _stacked(drawn: list[Drawn]) -> Drawn:
    return Drawn(*(np.stack(parts) for parts in zip(*drawn, strict=True)))
