"""Counts over time, in memory that grows with the length of a run and not with its rows."""

from collections import defaultdict
from datetime import UTC, datetime
from typing import NamedTuple

SLOT_S = 10
MINUTE, HOUR, DAY = 60, 3600, 86400
STEPS = (
    *(SLOT_S, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 28 * DAY, 364 * DAY),
)


class Span(NamedTuple):
    """A stretch of time cut into steps, in seconds since the epoch."""

    start: int
    end: int
    step: int

    def ticks(self, most: int = 7) -> tuple[list[int], int]:
        """Return about `most` round times at most, and the step between them."""
        step = step_for(self.end - self.start, most)
        return list(range(-(-self.start // step) * step, self.end + 1, step)), step


class Timeline:
    """Sums of what is added at a time, by kind."""

    def __init__(self) -> None:
        self._slots: defaultdict[str, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))

    def add(self, timestamp: str, kind: str = "", amount: float = 1) -> None:
        """Add to the slot of an ISO timestamp; one that is none is left out."""
        try:
            seconds = datetime.fromisoformat(timestamp).timestamp()
        except ValueError:
            return
        self._slots[kind][int(seconds // SLOT_S) * SLOT_S] += amount

    def kinds(self) -> list[str]:
        """Return the kinds, the most frequent first."""
        return sorted(self._slots, key=lambda kind: (-sum(self._slots[kind].values()), kind))

    def slots(self) -> set[int]:
        return {slot for counts in self._slots.values() for slot in counts}

    def sums(self, kind: str, span: Span) -> list[float]:
        """Return the sum of each step of a span."""
        sums = [0.0] * ((span.end - span.start) // span.step)
        for slot, amount in self._slots[kind].items() if kind in self._slots else ():
            sums[(slot - span.start) // span.step] += amount
        return sums


def span_of(slots: set[int], most: int = 48) -> Span:
    """Return the span of all slots in at most `most` steps."""
    first, last = min(slots, default=0), max(slots, default=0) + SLOT_S
    step = step_for(last - first, most - 1)
    return Span(first // step * step, -(-last // step) * step, step)


def step_for(seconds: int, most: int) -> int:
    return next((step for step in STEPS if seconds / step <= most), STEPS[-1])


def clock(seconds: int, step: int) -> str:
    """Write a time as exactly as a step needs, in UTC."""
    form = "%H:%M:%S" if step < MINUTE else "%b %d" if step >= DAY else "%b %d %H:%M"
    return datetime.fromtimestamp(seconds, UTC).strftime(form)
