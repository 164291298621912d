"""Reads discarded.jsonl back, in step with the finished rows."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from trajectile.errors import UserError
from trajectile.results.filters import DISCARD, Discard, reason_words
from trajectile.results.sources import FinishedRows, offset_of
from trajectile.run_folder.journal import records
from trajectile.run_folder.paths import RunFolder, write_atomic


def write_filtered(folder: RunFolder, rows: FinishedRows) -> None:
    """Leave word of the rows that the filter has read: shards of another start may be at work."""
    write_atomic(folder.filtered, msgspec.json.encode(rows.ends))


class DiscardedRows:
    """Tells, row by row in the order of `rows`, those that the filter has read, which are discarded, and counts them.

    A row with two reasons counts under both. UserError where the filter has not run.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.rows = _filtered(folder)
        self.total = 0
        self.reasons: list[str] = []
        self.by_reason = Counter[str]()
        self._discards = _read(folder)
        self._next = next(self._discards, None)

    def takes(self, place: int) -> bool:
        """Tell whether the row at a place is discarded, then for `reasons`; to be asked once for each row."""
        discard = self._next
        if not discard or discard.offset != offset_of(place) or discard.file != self.rows.name(place):
            return False
        self.total += 1
        self.reasons = discard.reasons
        self.by_reason.update(reason_words(discard.reasons))
        self._next = next(self._discards, None)
        return True

    def finish(self) -> None:
        """Raise UserError where discarded rows were not met: the files changed after the filter had read them."""
        if self._next:
            raise UserError(
                f"{self._next.file} has changed since discarded.jsonl was written: run filter_trajectories again"
            )


def _filtered(folder: RunFolder) -> FinishedRows:
    try:
        return FinishedRows(folder, msgspec.json.decode(folder.filtered.read_bytes(), type=dict[str, int]))
    except (FileNotFoundError, msgspec.DecodeError):
        raise UserError(f"{folder.filtered} is missing: run filter_trajectories first") from None


def _read(folder: RunFolder) -> Iterator[Discard]:
    if not folder.discarded.exists():
        raise UserError(f"{folder.discarded} is missing: run filter_trajectories first")
    return records(folder.discarded, DISCARD)
