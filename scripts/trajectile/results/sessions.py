"""How long a run ran: the time in which at least one of its shards did."""

from collections.abc import Iterable, Iterator

import msgspec

from trajectile.run_folder.paths import RunFolder


class Times(msgspec.Struct):
    """Start and last heartbeat, in seconds since the epoch, of each attempt at a shard."""

    sessions: list[tuple[float, float]] = []


def running_seconds(folder: RunFolder) -> float:
    """Return the length of the union of all shards' sessions, in seconds."""
    return union_length(_sessions(folder))


def _sessions(folder: RunFolder) -> Iterator[tuple[float, float]]:
    for number in folder.numbers("journal", ".times"):
        try:
            yield from msgspec.json.decode(folder.times(number).read_bytes(), type=Times).sessions
        except (FileNotFoundError, msgspec.DecodeError):
            continue  # a file torn by a kill costs its share of the duration, no more


def union_length(intervals: Iterable[tuple[float, float]]) -> float:
    """Return how much of the line the intervals cover."""
    covered, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        covered += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return covered
