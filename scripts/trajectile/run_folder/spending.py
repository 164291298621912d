"""What a run has cost so far, over all its shards, for a limit on it."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from trajectile.run_folder.locks import locked
from trajectile.run_folder.paths import RunFolder, replace_file
from trajectile.run_folder.times import read_times

Costs = dict[str, float]


class Purse:
    """A shard's view of the run's cost: its own at once, that of others as of the last `share`."""

    def __init__(self, folder: RunFolder, number: int, limit: float | None) -> None:
        self._folder = folder
        self._number = str(number)
        self.limit = limit
        self._others = 0.0

    def share(self, own: float) -> None:
        """Tell the other shards what this one cost so far, and learn what they did; nothing without a limit."""
        if self.limit is None:
            return
        with _shared(self._folder) as costs:
            costs[self._number] = max(own, costs.get(self._number, 0.0))
        self._others = sum(cost for number, cost in costs.items() if number != self._number)

    def problem(self, own: float) -> str:
        """Say that nothing is left for another prompt, "" where something is."""
        spent = own + self._others
        if self.limit is None or spent < self.limit:
            return ""
        return f"{exhausted(spent, self.limit)}; those in flight have ended"


def exhausted(spent: float, limit: float) -> str:
    """Say that the run's money is spent, and how to go on."""
    return f"the run has cost {spent:.4g}, max_cost is {limit:g}: no more prompts are begun. Raise max_cost to go on"


def open_purse(folder: RunFolder) -> float:
    """Begin the common account of a start of the run with what each shard cost before, and return the sum."""
    with _shared(folder) as costs:
        for number in folder.numbers("journal", ".times"):
            before = read_times(folder.times(number)).usage.cost
            costs[str(number)] = max(before, costs.get(str(number), 0.0))
    return sum(costs.values())


@contextmanager
def _shared(folder: RunFolder) -> Iterator[Costs]:
    """Read, change and write the costs by shard while no other process does."""
    with locked(folder.spent.with_suffix(".lock")):
        try:
            costs = msgspec.json.decode(folder.spent.read_bytes(), type=Costs)
        except (FileNotFoundError, msgspec.DecodeError):
            costs = {}
        yield costs
        replace_file(folder.spent, msgspec.json.encode(costs))
