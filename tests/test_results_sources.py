import msgspec
import pytest
from results_files import Run
from trajectile.results import sources
from trajectile.results.sources import FinishedRows, PlaceReader, offset_of
from trajectile.rows import Trajectory


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path, [f"prompt {n}" for n in range(6)])


def indices(rows):
    return [found.row.prompt_index for found in rows]


def test_batches_in_numeric_order_then_rows_only_a_journal_holds(run):
    run.batch(10, run.row(0))
    run.batch(2, run.row(1))
    run.journal(2, run.row(1), run.row(2))
    run.journal(3, run.row(4), run.row(3))
    assert indices(FinishedRows(run.folder)) == [1, 2, 4, 3, 0]


def test_damaged_lines_are_passed_over_and_counted(run):
    torn = msgspec.json.encode(run.row(3))[:-40]
    run.batch(0, run.row(0), {"prompt_key": "x"}, run.row(1), tail=b"\xff\xfe\n\n" + torn)
    run.journal(0, run.row(2), tail=torn)
    rows = FinishedRows(run.folder)
    assert indices(rows) == [0, 1, 2]
    assert rows.damaged == 4


def test_a_row_torn_in_the_batch_file_is_taken_from_the_journal(run):
    run.batch(0, run.row(0), tail=msgspec.json.encode(run.row(1))[:-1])
    run.journal(0, run.row(0), run.row(1))
    assert indices(FinishedRows(run.folder)) == [0, 1]


def test_line_separators_of_unicode_do_not_end_a_row(run):
    odd = "one\u2028two\u2029three\u0085four\x0bfive\x1cend"
    run.batch(0, run.row(0, answer=odd), run.row(1))
    run.journal(1, run.row(2, answer=odd))
    rows = list(FinishedRows(run.folder))
    assert indices(rows) == [0, 1, 2]
    assert rows[0].row.conversations[-1].value == rows[2].row.conversations[-1].value == odd


def test_an_empty_run_has_no_rows(run):
    rows = FinishedRows(run.folder)
    assert list(rows) == []
    assert rows.damaged == 0


def test_places_lead_back_to_the_lines_with_few_files_open(run, monkeypatch):
    monkeypatch.setattr(sources, "OPEN_FILES", 2)
    for number in range(5):
        run.batch(number, run.row(number), run.row(5, batch=number))
    rows = FinishedRows(run.folder)
    found = list(rows)
    assert [rows.name(f.place) for f in found[:3]] == ["batch_0.jsonl", "batch_0.jsonl", "batch_1.jsonl"]
    assert offset_of(found[0].place) == 0 and offset_of(found[1].place) == found[0].length + 1
    with PlaceReader(rows.files) as reader:
        for row, place, length in [*found, *found[::-1]]:
            assert msgspec.json.decode(reader.read(place, length), type=Trajectory) == row
