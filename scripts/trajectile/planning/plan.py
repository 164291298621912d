"""The plan: which rows of the dataset are owed and how they are cut into shards. Pure; decides by content alone."""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from trajectile.planning.inventory import Inventory, ShardFiles
from trajectile.run_folder.ids import KEY_BYTES, Id, digest_of

CUT_DIGITS = 16


class Shard(NamedTuple):
    """A shard that is to be made: the rows to run, whether its file is still to be written, and why it is owed.

    `withdrawn` are rows of an existing shard file that are not to run: they left the dataset or are finished elsewhere.
    `failed` counts the failed attempts at its rows, in whatever shard they were made.
    """

    number: int
    rows: list[Id]
    new: bool
    reason: str
    withdrawn: list[Id]
    failed: dict[Id, int]


class Plan(NamedTuple):
    """What is to be done. `batches` are all batch numbers there will be; `given_up` rows reached max_attempts.

    `digest` names the work: its first CUT_DIGITS the new shards, the rest those that go on, which may get on while the
    run starts. `results_digest` names what the results will be made of, and stays when the work is done.
    """

    prompts: int
    owed: list[Id]
    given_up: list[Id]
    shards: list[Shard]
    batches: list[int]
    digest: str
    results_digest: str
    dataset_digest: str


def make_plan(
    inventory: Inventory,
    failed: Counter[Id],
    *,
    batch_size: int,
    max_attempts: int | None = None,
    late: Collection[int] = (),
) -> Plan:
    """Plan a run. `failed` counts the failed attempts by row; shards keep their number and rows where they can.

    What a `late` shard failed at stays its own: a process of an earlier start has ended it just now.
    """
    missing = missing_rows(inventory)
    given_up = [row for row in missing if max_attempts and failed[row] >= max_attempts]
    owed = dict.fromkeys(missing)
    for row in given_up:
        del owed[row]
    rest = owed.copy()
    kept = list(_kept(inventory, rest, failed, late))
    shards = kept + list(_cut(list(rest), inventory.highest + 1, batch_size, failed))
    batches = sorted({s.number for s in inventory.shards if s.batch is not None} | {s.number for s in shards})
    return Plan(
        prompts=len(inventory.dataset.ids),
        owed=list(owed),
        given_up=given_up,
        shards=shards,
        batches=batches,
        digest=_digest(inventory, shards),
        results_digest=digest_of([inventory.dataset.digest.encode(), repr(batches).encode()])[:16],
        dataset_digest=inventory.dataset.digest,
    )


def missing_rows(inventory: Inventory) -> list[Id]:
    """Return the dataset rows that no finished row stands for, in order; equal rows are counted, not told apart."""
    done: set[Id] = set()
    finished = 0
    for shard in inventory.shards:
        ids = shard.batch if shard.journal is None and shard.batch is not None else shard.finished
        finished += len(ids)
        done.update(ids)
    missing = [row for row in inventory.dataset.ids if row not in done] if done else inventory.dataset.ids
    unmatched = finished - (len(inventory.dataset.ids) - len(missing))
    return list(_uncovered(missing, _spare(inventory, done))) if missing and unmatched else missing


def _spare(inventory: Inventory, done: set[Id]) -> Counter[bytes]:
    """Count, by key, the finished rows that match no dataset row exactly: other ordinals and second copies."""
    rows = Counter(row for shard in inventory.shards for row in shard.finished)
    rows.subtract(done.intersection(inventory.dataset.ids))
    spare: Counter[bytes] = Counter()
    for row, count in rows.items():
        spare[row[:KEY_BYTES]] += count
    return spare


def _uncovered(missing: list[Id], spare: Counter[bytes]) -> Iterator[Id]:
    for row in missing:
        if spare[row[:KEY_BYTES]] > 0:
            spare[row[:KEY_BYTES]] -= 1
        else:
            yield row


def _kept(inventory: Inventory, rest: dict[Id, None], failed: Counter[Id], late: Collection[int]) -> Iterator[Shard]:
    """Yield the begun shards that go on under their number, taking their rows out of `rest`."""
    for files in inventory.shards:
        run = [row for row in files.given or () if row in rest]
        goes_on = _goes_on(files, run)
        for row in run if goes_on or files.number in late else ():
            del rest[row]
        if goes_on:
            over = files.finished.union(run)
            withdrawn = [row for row in files.given or () if row not in over]
            yield Shard(files.number, run, False, _why_kept(files, run, failed), withdrawn, _failed_of(run, failed))


def _goes_on(files: ShardFiles, run: list[Id]) -> bool:
    """A process of an earlier start may be about to begin a shard without journal: its rows belong to no other."""
    if files.batch is None:
        return bool(files.journal or run)
    return bool(files.journal) and not set(files.journal or ()) <= set(files.batch)


def _why_kept(files: ShardFiles, run: list[Id], failed: Counter[Id]) -> str:
    if files.batch is not None:
        return f"batch file damaged: {len(set(files.journal or ()))} rows in its journal, {_rows(run, failed)}"
    if files.journal:
        return f"never finished: {len(set(files.journal))} rows in its journal, {_rows(run, failed)}"
    return f"{'batch file is gone' if files.batch_lost else 'never finished'}: {_rows(run, failed)}"


def _cut(rows: list[Id], first: int, size: int, failed: Counter[Id]) -> Iterator[Shard]:
    for offset in range(0, len(rows), size):
        part = rows[offset : offset + size]
        again = _failed_of(part, failed)
        yield Shard(first + offset // size, part, True, f"new: {_rows(part, failed)}", [], again)


def _rows(rows: list[Id], failed: Counter[Id]) -> str:
    again = _failed_of(rows, failed).values()
    text = f"{len(rows)} to run"
    return f"{text}, {len(again)} of them failed before ({max(again)} times at most)" if again else text


def _failed_of(rows: list[Id], failed: Counter[Id]) -> dict[Id, int]:
    return {row: failed[row] for row in rows if row in failed} if failed else {}


def _digest(inventory: Inventory, shards: list[Shard]) -> str:
    cut, begun = [inventory.dataset.digest.encode()], [b""]
    for shard in shards:
        parts = cut if shard.new else begun
        parts += [repr((shard.number, len(shard.rows))).encode(), b"".join(shard.rows), b"".join(shard.withdrawn)]
    return digest_of(cut)[:CUT_DIGITS] + digest_of(begun)[:CUT_DIGITS]
