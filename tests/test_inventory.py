from collections.abc import Iterator
from pathlib import Path

import pytest
from results_files import Run, failure
from trajectile.dataset import prompts
from trajectile.dataset.raw_rows import RawRow
from trajectile.planning.inventory import (
    Inventory,
    batch_ids,
    failed_attempts,
    remember_all,
    remember_batch,
    shard_ids,
    take_inventory,
)
from trajectile.run_folder.ids import Ids, make_id, remember


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path, [f"task {n}" for n in range(6)])


def take(run: Run) -> Inventory:
    return take_inventory(run.folder, run.dataset, on_bad_row="error", max_samples=None)


def ids(run: Run, *indices: int) -> list[bytes]:
    return [make_id(run.prompts[n].prompt_key, run.prompts[n].ordinal) for n in indices]


def give(run: Run, number: int, *indices: int) -> None:
    run.write(run.folder.shard(number), *(run.prompts[n] for n in indices))


def test_before_the_first_start_there_is_the_dataset_alone(run: Run) -> None:
    found = take(run)
    assert (found.dataset.ids, found.shards, found.highest) == (ids(run, *range(6)), [], -1)


def test_each_shard_is_told_by_its_files(run: Run) -> None:
    give(run, 0, 0, 1)
    run.batch(0, run.row(0), run.row(1))
    give(run, 1, 2, 3)
    run.journal(1, run.row(3), tail=b"{")
    give(run, 2, 4)
    run.batch(7, run.row(5))
    done, begun, new, alone = take(run).shards
    assert (done.number, done.given, done.journal, done.batch) == (0, None, None, ids(run, 0, 1))
    assert (begun.given, begun.journal, begun.batch, begun.finished) == (
        ids(run, 2, 3),
        ids(run, 3),
        None,
        set(ids(run, 3)),
    )
    assert (new.given, new.journal, new.batch, new.finished) == (ids(run, 4), None, None, set())
    assert (alone.number, alone.batch) == (7, ids(run, 5))


def test_a_batch_file_that_is_gone_is_missed(run: Run) -> None:
    give(run, 0, 0)
    run.batch(0, run.row(0))
    remember_batch(run.folder, 0)
    assert not take(run).shards[0].batch_lost
    run.folder.batch(0).unlink()
    assert take(run).shards[0].batch_lost and take(run).shards[0].given == ids(run, 0)


@pytest.mark.parametrize("name", ["batch_0.old.jsonl", "batch_0.jsonl.bak", "batch_00.jsonl", "batch_0.jsonl.jsonl"])
def test_a_copy_that_somebody_keeps_is_no_batch(run: Run, name: str) -> None:
    run.batch(0, run.row(0))
    run.folder.batch(0).rename(run.folder.root / name)
    assert take(run).shards == [] and run.folder.numbers("") == []


@pytest.mark.parametrize("place", ["batch", "journal", "times", "ledger", "shard", "keys"])
def test_no_number_that_was_ever_used_is_used_again(run: Run, place: str) -> None:
    path = run.folder.keys(run.folder.batch(41)) if place == "keys" else getattr(run.folder, place)(41)
    run.write(path)
    run.write(run.folder.batch(3))
    assert take(run).highest == 41


def test_what_is_remembered_is_not_read_again(run: Run) -> None:
    give(run, 0, 0)
    run.batch(0, run.row(0))
    remember_all(run.folder, run.dataset, take(run).dataset, on_bad_row="error", max_samples=None)
    made_up = ids(run, 5)
    for path in (run.folder.batch(0), run.folder.shard(0)):
        remember(run.folder, path, Ids(made_up, ""))
    remember(run.folder, run.dataset, Ids(made_up, "d"), on_bad_row="error", max_samples=None)
    assert batch_ids(run.folder, 0) == shard_ids(run.folder, 0) == take(run).dataset.ids == made_up
    run.batch(0, run.row(0), run.row(1))
    assert batch_ids(run.folder, 0) == ids(run, 0, 1)


def test_a_dataset_that_is_replaced_while_it_is_read_is_not_remembered(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = {"on_bad_row": "error", "max_samples": None}
    real = prompts.read_raw

    def replaced_meanwhile(path: Path) -> Iterator[RawRow]:
        yield from real(path)
        monkeypatch.undo()
        other = path.with_name("other.jsonl")
        other.write_text('{"prompt": "one more"}\n' + path.read_text())
        other.replace(path)

    monkeypatch.setattr(prompts, "read_raw", replaced_meanwhile)
    before = take(run).dataset
    remember_all(run.folder, run.dataset, before, **reading)
    assert len(take(run).dataset.ids) == len(before.ids) + 1


def test_remembering_writes_only_what_is_new(run: Run) -> None:
    run.batch(0, run.row(0))
    dataset = take(run).dataset
    remember_all(run.folder, run.dataset, dataset, on_bad_row="error", max_samples=None)
    files = {path: path.stat().st_mtime_ns for path in (run.folder.root / "keys").iterdir()}
    assert len(files) == 2
    run.batch(1, run.row(1))
    remember_all(run.folder, run.dataset, dataset, on_bad_row="error", max_samples=None)
    later = {path: path.stat().st_mtime_ns for path in (run.folder.root / "keys").iterdir()}
    assert len(later) == 3 and files.items() < later.items()


def test_failed_attempts_are_counted_over_all_ledgers(run: Run) -> None:
    one, two = run.prompts[:2]
    run.ledger(0, failure(one, "timeout", 1), failure(two, "timeout", 2))
    run.ledger(5, failure(one, "rate_limit", 3), tail=b'{"torn')
    assert dict(failed_attempts(run.folder)) == dict(zip(ids(run, 0, 1), (2, 1), strict=True))
