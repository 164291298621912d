"""A shard's files before and after its prompts run: what is to run, and the batch file of all finished rows."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from trajectile.rows import PromptRow
from trajectile.run_folder.ids import Id, make_id, row_ids
from trajectile.run_folder.journal import PROMPT, TRAJECTORY, decode, records, row_lines
from trajectile.run_folder.paths import RunFolder, replacing


class FinishedRow(NamedTuple):
    """A finished row as it lies in a journal or batch file."""

    id: Id
    prompt_index: int
    line: bytes


def finished_rows(folder: RunFolder, number: int) -> dict[Id, FinishedRow]:
    """Return the finished rows of a shard, from its batch file and its journal; the first of equal ones counts."""
    found: dict[Id, FinishedRow] = {}
    for path in (folder.batch(number), folder.journal(number)):
        for _, line in row_lines(path):
            if row := decode(line, TRAJECTORY):
                key = make_id(row.prompt_key, row.metadata.ordinal)
                found.setdefault(key, FinishedRow(key, row.prompt_index, line))
    return found


def given_rows(folder: RunFolder, number: int) -> Iterator[PromptRow]:
    """Yield the rows that a shard was given, in its order."""
    yield from records(folder.shard(number), PROMPT)


def rows_to_run(folder: RunFolder, number: int, withdrawn: set[Id]) -> list[PromptRow]:
    """Return the rows of a shard that are owed: neither finished nor withdrawn by the plan."""
    over = withdrawn | finished_rows(folder, number).keys()
    return [row for row in given_rows(folder, number) if make_id(row.prompt_key, row.ordinal) not in over]


def is_complete(folder: RunFolder, number: int) -> bool:
    """Whether the batch file is there and holds all that the journal does."""
    return folder.batch(number).exists() and set(row_ids(folder.journal(number))) <= set(row_ids(folder.batch(number)))


def write_batch(folder: RunFolder, number: int) -> list[int]:
    """Write the batch file in the shard's order and return the prompt indices in it."""
    finished = finished_rows(folder, number)
    order = {make_id(row.prompt_key, row.ordinal): place for place, row in enumerate(given_rows(folder, number))}
    rows = sorted(finished.values(), key=lambda row: (order.get(row.id, len(order)), row.id))
    with replacing(folder.batch(number)) as file:
        for row in rows:
            file.write(row.line + b"\n")
    return [row.prompt_index for row in rows]


def save_batch_rows(folder: RunFolder, number: int) -> None:
    """Make a journal hold the rows of its batch file too, before that file is made anew."""
    lines = [row.line for row in finished_rows(folder, number).values()]
    with replacing(folder.journal(number)) as file:
        file.write(b"".join(line + b"\n" for line in lines))


class ManifestShard(msgspec.Struct):
    """What the plan says of one shard: how many rows to run, which rows of its file not to run, and how often rows
    failed before. Rows are named by their ids in hex."""

    to_run: int
    withdrawn: list[str] = []
    failed: dict[str, int] = {}


class Manifest(msgspec.Struct):
    """The plan as the shards read it."""

    digest: str
    shards: dict[str, ManifestShard]
