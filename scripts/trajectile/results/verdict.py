"""How a run ended: what is owed, what failed, and whether that is few enough."""

from collections.abc import Iterator

import msgspec

from trajectile.configuration.frozen import prompt_again
from trajectile.errors import UserError
from trajectile.results.shape import Statistics
from trajectile.results.tables import counted
from trajectile.run_folder.ids import row_ids
from trajectile.run_folder.lease import living_owner
from trajectile.run_folder.paths import RunFolder


class Verdict(msgspec.Struct):
    """verdict.json; all numbers count prompts of the dataset, which are `finished`, `owed` or `given_up`."""

    run_name: str
    prompts: int
    finished: int
    owed: int
    given_up: int
    failed: int
    failed_fraction: float
    max_failed_fraction: float
    holds: bool


def judge(statistics: Statistics, max_failed_fraction: float) -> Verdict:
    """Judge a run by the fraction of its prompts that failed and have no row."""
    prompts, failed = statistics.total_prompts, statistics.failed.total
    fraction = failed / prompts if prompts else 0.0
    return Verdict(
        run_name=statistics.run_name,
        prompts=prompts,
        finished=statistics.finished,
        owed=statistics.owed,
        given_up=statistics.given_up,
        failed=failed,
        failed_fraction=fraction,
        max_failed_fraction=max_failed_fraction,
        holds=fraction <= max_failed_fraction,
    )


def last_lines(statistics: Statistics, verdict: Verdict, prompt: str = "") -> Iterator[str]:
    """Yield what a user reads last: rows, discards, failures by kind, what has no row and how to go on.

    `prompt` is the digest of the run's ephemeral system prompt.
    """
    yield f"{verdict.run_name}: {verdict.finished:,} of {verdict.prompts:,} prompts finished"
    yield f"  discarded: {counted(statistics.discarded.total, statistics.discarded.by_reason)}"
    yield f"  failed:    {counted(verdict.failed, statistics.failed.by_kind)}"
    if not verdict.holds:
        yield (
            f"  {verdict.failed_fraction:.1%} of the prompts failed, more than max_failed_fraction "
            f"({verdict.max_failed_fraction:.1%}) allows"
        )
    if verdict.owed:
        yield f"  owed:      {verdict.owed:,}; to run them, give the same command again"
    if verdict.given_up:
        again = f"python scripts/batch_runner.py --run_name={verdict.run_name} --retry_failed{prompt_again(prompt)}"
        yield f"  given up:  {verdict.given_up:,} after max_attempts; to try them once more: {again}"


def read_statistics(folder: RunFolder) -> Statistics:
    """Read statistics.json; UserError where it is missing or is not one."""
    try:
        return msgspec.json.decode(folder.statistics.read_bytes(), type=Statistics)
    except FileNotFoundError:
        raise UserError(f"{folder.statistics} is missing: run compute_statistics first") from None
    except msgspec.DecodeError as error:
        raise UserError(f"{folder.statistics} cannot be read: {error}") from None


def drop_copied_journals(folder: RunFolder) -> int:
    """Delete the journals whose rows are all in their batch files and that nobody writes; return how many."""
    copied = [number for number in folder.numbers("journal") if _is_copied(folder, number)]
    for number in copied:
        folder.journal(number).unlink()
    return len(copied)


def _is_copied(folder: RunFolder, number: int) -> bool:
    if not folder.batch(number).exists() or living_owner(folder.shard_lease(number)):
        return False
    return set(row_ids(folder.journal(number))) <= set(row_ids(folder.batch(number)))
