"""What lies in a run folder: the rows each shard was given, and those it finished."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from trajectile.dataset.prompts import read_ids
from trajectile.run_folder.ids import Id, Ids, make_id, remember, remembered, row_ids, stamp_of
from trajectile.run_folder.journal import FAILURE, PROMPT, records
from trajectile.run_folder.paths import RunFolder

KEYS = ".jsonl.keys"


class ShardFiles(NamedTuple):
    """The rows of one shard's files; None for a file that is not there, or need not be read.

    `given` is the shard file, `journal` and `batch` hold finished rows; with `batch_lost` there was a batch file once.
    """

    number: int
    given: list[Id] | None
    journal: list[Id] | None
    batch: list[Id] | None
    batch_lost: bool = False

    @property
    def finished(self) -> set[Id]:
        return set(self.batch or ()) | set(self.journal or ())


class Inventory(NamedTuple):
    """All that a plan depends on. `highest` is the highest shard number ever used, -1 for none."""

    dataset: Ids
    shards: list[ShardFiles]
    highest: int


def take_inventory(folder: RunFolder, dataset_file: Path, *, on_bad_row: str, max_samples: int | None) -> Inventory:
    """Read the dataset and the run folder, writing nothing; unchanged files are known from their remembered keys."""
    options = {"on_bad_row": on_bad_row, "max_samples": max_samples}
    dataset = dataset_file.is_file() and remembered(folder, dataset_file, **options)
    dataset = dataset or read_ids(dataset_file, on_bad_row=on_bad_row, max_samples=max_samples)
    shards = list(_shards(folder))
    used = [
        *folder.numbers("failures"),
        *folder.numbers("keys", KEYS),
        *folder.numbers("journal", ".times"),
    ]
    highest = max([*used, *(shard.number for shard in shards)], default=-1)
    return Inventory(dataset, shards, highest)


def _shards(folder: RunFolder) -> Iterator[ShardFiles]:
    batches, journals = set(folder.numbers("")), set(folder.numbers("journal"))
    given, lost = set(folder.numbers("shards")), set(folder.numbers("keys", KEYS, "batch_")) - batches
    for number in sorted(batches | journals | given):
        batch = batch_ids(folder, number) if number in batches else None
        journal = list(row_ids(folder.journal(number))) if number in journals else None
        open_ended = number in given and (batch is None or journal is not None)
        yield ShardFiles(number, shard_ids(folder, number) if open_ended else None, journal, batch, number in lost)


def batch_ids(folder: RunFolder, number: int) -> list[Id]:
    """Return the identities of the rows of a batch file."""
    path = folder.batch(number)
    known = remembered(folder, path)
    return known.ids if known else list(row_ids(path))


def shard_ids(folder: RunFolder, number: int) -> list[Id]:
    """Return the identities of the rows that a shard was given."""
    path = folder.shard(number)
    known = remembered(folder, path)
    return known.ids if known else [make_id(row.prompt_key, row.ordinal) for row in records(path, PROMPT)]


def remember_batch(folder: RunFolder, number: int) -> None:
    """Keep the keys of a batch file beside it."""
    stamp = stamp_of(folder.batch(number))
    remember(folder, folder.batch(number), Ids(list(row_ids(folder.batch(number))), "", stamp=stamp))


def remember_all(folder: RunFolder, dataset_file: Path, dataset: Ids, **options: object) -> None:
    """Keep the keys of the dataset and of each batch file that has none yet."""
    if remembered(folder, dataset_file, **options) is None:
        remember(folder, dataset_file, dataset, **options)
    for number in folder.numbers(""):
        if remembered(folder, folder.batch(number)) is None:
            remember_batch(folder, number)


def failed_attempts(folder: RunFolder) -> Counter[Id]:
    """Count the failed attempts in the ledgers, by row."""
    ledgers = (folder.ledger(number) for number in folder.numbers("failures"))
    failures = (failure for ledger in ledgers for failure in records(ledger, FAILURE))
    return Counter(make_id(failure.prompt_key, failure.ordinal) for failure in failures)
