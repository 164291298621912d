from pathlib import Path

import msgspec
import pytest
from results_files import Run
from trajectile.planning.inventory import remember_batch
from trajectile.rows import PromptRow
from trajectile.run_folder.batch import finished_rows, rows_to_run, save_batch_rows, write_batch
from trajectile.run_folder.ids import make_id

PROMPTS = ["a", "b", "same", "same", "c"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Shard 0 was given all prompts."""
    made = Run(tmp_path, PROMPTS)
    made.write(made.folder.shard(0), *made.prompts)
    return made


def id_of(prompt: PromptRow) -> bytes:
    return make_id(prompt.prompt_key, prompt.ordinal)


def indices(rows: list[PromptRow]) -> list[int]:
    return [row.prompt_index for row in rows]


def written(run: Run) -> list[int]:
    lines = run.folder.batch(0).read_bytes().splitlines()
    return [msgspec.json.decode(line)["prompt_index"] for line in lines]


def test_what_is_finished_or_withdrawn_does_not_run(run: Run) -> None:
    assert indices(rows_to_run(run.folder, 0, set())) == [0, 1, 2, 3, 4]
    run.journal(0, run.row(3))
    run.batch(0, run.row(0))
    assert indices(rows_to_run(run.folder, 0, set())) == [1, 2, 4]
    assert indices(rows_to_run(run.folder, 0, {id_of(run.prompts[1])})) == [2, 4]


def test_equal_prompts_are_told_apart(run: Run) -> None:
    run.journal(0, run.row(2))
    assert indices(rows_to_run(run.folder, 0, set())) == [0, 1, 3, 4]


def test_a_torn_line_is_to_run_again(run: Run) -> None:
    run.journal(0, run.row(0), tail=msgspec.json.encode(run.row(1))[:-9])
    assert indices(rows_to_run(run.folder, 0, set())) == [1, 2, 3, 4]


def test_the_batch_file_is_in_the_shards_order_whatever_finished_first(run: Run) -> None:
    run.journal(0, *(run.row(n) for n in (4, 2, 0, 3)))
    assert write_batch(run.folder, 0) == [0, 2, 3, 4]
    assert written(run) == [0, 2, 3, 4]


def test_rows_of_no_known_place_come_last(tmp_path: Path) -> None:
    run = Run(tmp_path, PROMPTS)
    run.write(run.folder.shard(0), run.prompts[4], run.prompts[0])
    run.journal(0, run.row(1), run.row(0), run.row(4))
    write_batch(run.folder, 0)
    assert written(run) == [4, 0, 1]


def test_rows_of_a_damaged_batch_file_stay_and_the_first_of_equal_ones_counts(run: Run) -> None:
    run.batch(0, run.row(1, answer="paid first"), tail=b'{"torn')
    run.journal(0, run.row(1, answer="paid twice"), run.row(0))
    write_batch(run.folder, 0)
    assert written(run) == [0, 1]
    assert b"paid first" in run.folder.batch(0).read_bytes()
    assert b"paid twice" not in run.folder.batch(0).read_bytes()


def test_a_shard_in_which_all_failed_has_an_empty_batch_file(run: Run) -> None:
    assert write_batch(run.folder, 0) == []
    assert run.folder.batch(0).read_bytes() == b""


def test_a_journal_takes_the_rows_of_a_batch_file_that_is_to_be_made_anew(run: Run) -> None:
    run.batch(0, run.row(0), run.row(1), tail=b"\xff\n")
    run.journal(0, run.row(4), tail=b"{")
    save_batch_rows(run.folder, 0)
    run.folder.batch(0).unlink()
    assert {row.prompt_index for row in finished_rows(run.folder, 0).values()} == {0, 1, 4}
    assert run.folder.journal(0).read_bytes().count(b"\n") == 3


def test_a_batch_file_can_be_remembered(run: Run) -> None:
    run.journal(0, run.row(0))
    write_batch(run.folder, 0)
    remember_batch(run.folder, 0)
    assert run.folder.keys(run.folder.batch(0)).exists()
