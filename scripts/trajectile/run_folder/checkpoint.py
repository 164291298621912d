"""checkpoint.json: which prompts are finished, for a person to read; never trusted by a run."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime

import msgspec

from trajectile.run_folder.journal import records
from trajectile.run_folder.locks import locked
from trajectile.run_folder.paths import RunFolder, write_atomic


class Checkpoint(msgspec.Struct):
    """Finished prompt indices as [first, last] ranges, and the batches that hold them."""

    finished: list[tuple[int, int]] = []
    batches: list[int] = []
    updated: str = ""


class _Finished(msgspec.Struct):
    """What is read of a row."""

    prompt_index: int


FINISHED = msgspec.json.Decoder(_Finished)


def update_checkpoint(folder: RunFolder, batch: int, indices: Iterable[int]) -> None:
    """Add a batch and its prompt indices; shards that end at the same time take turns."""
    with _locked(folder):
        _add(folder, read_checkpoint(folder), [batch], indices)


def rebuild_checkpoint(folder: RunFolder) -> None:
    """Where a batch is gone, at the start of a run, read from the others what is finished; it costs nothing else."""
    with _locked(folder):
        there = folder.numbers("")
        if set(read_checkpoint(folder).batches) - set(there):
            rows = (row for number in there for row in records(folder.batch(number), FINISHED))
            _add(folder, Checkpoint(), there, (row.prompt_index for row in rows))


def _locked(folder: RunFolder) -> AbstractContextManager[int]:
    return locked(folder.root / "journal" / "checkpoint.lock")


def _add(folder: RunFolder, known: Checkpoint, batches: Iterable[int], indices: Iterable[int]) -> None:
    ranges = merge_ranges([*known.finished, *((index, index) for index in indices)])
    now = datetime.now(UTC).isoformat(timespec="seconds")
    made = Checkpoint(ranges, sorted({*known.batches, *batches}), now)
    write_atomic(folder.checkpoint, msgspec.json.encode(made))


def read_checkpoint(folder: RunFolder) -> Checkpoint:
    """Return the checkpoint, an empty one where there is none that can be read."""
    try:
        return msgspec.json.decode(folder.checkpoint.read_bytes(), type=Checkpoint)
    except (FileNotFoundError, msgspec.DecodeError):
        return Checkpoint()


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same numbers in as few [first, last] ranges as possible."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged
