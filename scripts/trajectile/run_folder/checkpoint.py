"""checkpoint.json: which prompts are finished, for a person to read; never trusted by a run."""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from trajectile.run_folder.locks import locked
from trajectile.run_folder.paths import RunFolder, write_atomic


class Checkpoint(msgspec.Struct):
    """Finished prompt indices as [first, last] ranges, and the batches that hold them."""

    finished: list[tuple[int, int]] = []
    batches: list[int] = []
    updated: str = ""


def update_checkpoint(folder: RunFolder, batch: int, indices: Iterable[int]) -> None:
    """Add a batch and its prompt indices; shards that end at the same time take turns."""
    with locked(folder.root / "journal" / "checkpoint.lock"):
        known = read_checkpoint(folder)
        ranges = merge_ranges([*known.finished, *((index, index) for index in indices)])
        batches = sorted({*known.batches, batch})
        now = datetime.now(UTC).isoformat(timespec="seconds")
        write_atomic(folder.checkpoint, msgspec.json.encode(Checkpoint(ranges, batches, now)))


def rebuild_checkpoint(folder: RunFolder) -> None:
    """Forget batches that are gone, at the start of a run; their indices are added again as they are made anew."""
    known = read_checkpoint(folder)
    if set(known.batches) - set(folder.numbers("")):
        folder.checkpoint.unlink(missing_ok=True)


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
