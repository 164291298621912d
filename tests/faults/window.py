"""One start of the pipeline seen as a window of time: what was wanted, what was there, what was paid for."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from time import time

from faults.evidence import Calls, Row, calls_between, count_rows
from faults.report import Report


@dataclass
class Window:
    """From a start to the next one, or to the instant when none of its processes was left.

    `wanted` is the dataset's multiset of prompts (with those of orphans from earlier starts), `before` the durable
    rows at `began`; `in_flight` is the most prompts that can have been in flight at once; `beside_orphans` says that
    processes of earlier starts went on, `gentle` that nothing was killed or stopped.
    """

    began: float
    wanted: Counter[str]
    before: set[Row]
    in_flight: int
    beside_orphans: bool
    gentle: bool

    def check(self, report: Report, after: set[Row], log: Path) -> None:
        """Judge the window, which ends now, by the durable rows and the server's log."""
        calls = calls_between(log, self.began, time())
        if lost := self.before - after:
            report.rows_lost += len(lost)
            report.broken("rows lost", ", ".join(repr(row.prompt) for row in lost))
        self._paid_once(report, calls)
        made = count_rows(after - self.before)
        self._in_flight(report, calls, made)
        report.begun_in_vain += 0 if self.gentle else len(calls.begun.keys() - made.keys())

    def _paid_once(self, report: Report, calls: Calls) -> None:
        owed = self.wanted - count_rows(self.before)
        again = {prompt: count for prompt, count in calls.begun.items() if not owed[prompt]}
        twice = {prompt: count for prompt, count in (calls.finals - owed).items() if owed[prompt]}
        if self.beside_orphans and sum(twice.values()) <= self.in_flight:
            twice = {}  # in flight in an earlier start's shard when it was struck; this start began that shard again
        report.paid_twice += sum(again.values()) + sum(twice.values())
        if again:
            report.broken("finished prompts asked again", repr(again))
        if twice:
            report.broken("prompts answered more often than owed", repr(twice))

    def _in_flight(self, report: Report, calls: Calls, made: Counter[str]) -> None:
        lost = (calls.finals - made).total()
        report.answers_lost_in_flight += lost
        if lost > (0 if self.gentle else self.in_flight):
            report.broken("answers lost", f"{lost}; {self.in_flight} in flight at most; gentle: {self.gentle}")
