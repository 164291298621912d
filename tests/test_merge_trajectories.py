import io

import msgspec
import pytest
from compute_statistics import main as statistics
from filter_trajectories import main as filter_rows
from merge_trajectories import main
from results_files import Run, invoke
from trajectile.errors import UserError
from trajectile.results.command import Dataset
from trajectile.results.merge import merge as merge_rows
from trajectile.results.merge import scan
from trajectile.results.merged_row import MergedRow
from trajectile.rows import ToolStat, Trajectory


def merge(run, *options):
    assert invoke(filter_rows, run, dataset=False).exit_code == 0
    result = invoke(main, run, *options)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path, [{"prompt": f"prompt {n}", "label": n} for n in range(5)])


def indices(run):
    return [row.prompt_index for row in run.merged()]


def test_rows_come_in_dataset_order_without_the_discarded_ones(run):
    run.batch(0, run.row(4), run.row(1, reasoning=""), run.row(0))
    run.journal(3, run.row(3, batch=3))
    output = merge(run)
    assert output == "merge_trajectories: 3 rows written, 1 discarded, 0 superseded; prompts without a row: 1\n"
    assert indices(run) == [0, 3, 4]


def test_index_and_source_come_from_the_dataset_of_today(run):
    run.batch(0, *(run.row(n) for n in range(5)))
    run.set_dataset([{"prompt": "new"}, *({"prompt": f"prompt {n}", "label": f"now {n}"} for n in (4, 2, 0))])
    output = merge(run)
    assert output == "merge_trajectories: 3 rows written, 0 discarded, 2 superseded; prompts without a row: 1\n"
    rows = run.merged()
    assert [row.prompt_index for row in rows] == [1, 2, 3]
    assert [row.conversations[0].value for row in rows] == ["prompt 4", "prompt 2", "prompt 0"]
    assert [msgspec.json.decode(row.source) for row in rows] == [{"label": f"now {n}"} for n in (4, 2, 0)]


@pytest.mark.parametrize("places", [(1, 0, 2, 3, 4), (0, 1, 2, 3), (0, 1, 2, 3, 4, 4)])
def test_a_dataset_that_changes_meanwhile_mixes_up_no_rows(run, places):
    run.batch(0, *(run.row(n) for n in range(5)))
    assert invoke(filter_rows, run, dataset=False).exit_code == 0
    dataset = Dataset(run.dataset, 0, "error")
    scanned = scan(run.folder, dataset, [])
    run.set_dataset([{"prompt": f"prompt {n}", "label": n} for n in places])
    with pytest.raises(UserError, match="the dataset changed while"):
        merge_rows(scanned, dataset, io.BytesIO(), keep_superseded=False)


def test_superseded_rows_can_be_kept_after_all_others(run):
    run.batch(0, *(run.row(n) for n in range(5)))
    gone = {run.prompts[n].prompt_key for n in (0, 2)}
    run.set_dataset([{"prompt": f"prompt {n}"} for n in (4, 3, 1)])
    merge(run, "--superseded_rows", "keep")
    rows = run.merged()
    assert [row.conversations[0].value for row in rows[:3]] == ["prompt 4", "prompt 3", "prompt 1"]
    assert {row.prompt_key for row in rows[3:]} == gone and indices(run) == [0, 1, 2, -1, -1]


def test_equal_prompts_keep_their_multiplicity(tmp_path):
    run = Run(tmp_path, ["same", "other", "same", "same"])
    run.batch(0, run.row(2, answer="second"), run.row(3, answer="third"))
    run.batch(1, run.row(0, answer="first"), run.row(1))
    run.batch(2, run.row(0, answer="paid twice"))
    assert "4 rows written, 0 discarded, 1 superseded; prompts without a row: 0" in merge(run)
    assert [row.conversations[-1].value for row in run.merged()] == ["first", "done", "second", "third"]


def test_the_file_does_not_depend_on_how_the_work_was_cut(run, tmp_path):
    other = Run(tmp_path / "other", [{"prompt": f"prompt {n}", "label": n} for n in range(5)])
    run.batch(0, *(run.row(n, seconds=n) for n in range(5)))
    few = ["terminal"]
    other.batch(3, other.row(4, batch=3, seconds=9))
    other.journal(3, other.row(4, batch=3), other.row(2, batch=3, tools=few), tail=b'{"prompt_index": 1')
    other.batch(11, other.row(3, batch=11), other.row(0, batch=11), other.row(1, batch=11))
    merge(run)
    merge(other)
    mine, theirs = run.merged(), other.merged()
    for row in (*mine, *theirs):
        row.metadata.batch_num, row.metadata.duration_seconds = 0, 0
    assert [msgspec.json.encode(row) for row in mine] == [msgspec.json.encode(row) for row in theirs]


def test_every_row_names_every_tool_in_one_order(run):
    run.batch(0, run.row(0, tools=["terminal"]), run.row(1, tools=["web_search", "read_file", "terminal"]))
    run.write(run.folder.run_json, {"run_name": "run", "settings": {}, "tools": ["terminal", "todo"]})
    merge(run)
    names = ["read_file", "terminal", "todo", "web_search"]
    for line in run.folder.trajectories.read_bytes().splitlines():
        row = msgspec.json.decode(line)
        assert list(row["tool_stats"]) == list(row["tool_error_counts"]) == names
    first = run.merged()[0]
    assert first.tool_stats["terminal"] == ToolStat(1, 1, 0) and first.tool_stats["todo"] == ToolStat()


def test_made_up_tools_of_discarded_rows_are_no_columns(run):
    run.batch(0, run.row(0, calls=("made_up",), tools=["made_up", "terminal"]), run.row(1))
    merge(run)
    assert [list(row.tool_stats) for row in run.merged()] == [["read_file", "terminal"]]


def test_unicode_line_separators_stay_inside_their_row(run):
    odd = "one\u2028two\u2029three\u0085four"
    run.set_dataset([odd, "plain"])
    run.batch(0, run.row(1), run.row(0, answer=odd))
    merge(run)
    assert run.folder.trajectories.read_bytes().count(b"\n") == 2
    row = run.merged()[0]
    assert row.conversations[0].value == row.conversations[-1].value == odd


def test_an_empty_run_gives_an_empty_file(run):
    assert merge(run) == "merge_trajectories: 0 rows written, 0 discarded, 0 superseded; prompts without a row: 5\n"
    assert run.folder.trajectories.read_bytes() == b""


@pytest.mark.parametrize(("samples", "written", "superseded"), [("2", 2, 3), ("0", 5, 0), ("9", 5, 0)])
def test_rows_beyond_max_samples_are_superseded_and_0_means_all(run, samples, written, superseded):
    run.batch(0, *(run.row(n) for n in range(5)))
    output = merge(run, "--max_samples", samples)
    assert f"{written} rows written, 0 discarded, {superseded} superseded; prompts without a row: 0" in output


def test_rows_that_come_after_the_filter_has_read_wait_for_its_next_time(run):
    run.journal(0, run.row(0), run.row(1, reasoning=""))
    assert invoke(filter_rows, run, dataset=False).exit_code == 0
    run.journal(0, run.row(0), run.row(1, reasoning=""), run.row(2), run.row(3, reasoning=""))
    run.batch(1, run.row(4, reasoning=""))
    for step in (statistics, main):
        assert invoke(step, run).exit_code == 0
    assert indices(run) == [0]
    assert msgspec.json.decode(run.folder.statistics.read_bytes())["owed"] == 3
    merge(run)
    assert indices(run) == [0, 2]


def test_a_missing_or_outdated_filter_is_named(run):
    run.batch(0, run.row(0), run.row(1, reasoning=""))
    result = invoke(main, run)
    assert result.exit_code == 2 and "run filter_trajectories first" in result.stderr
    merge(run)
    before = run.folder.trajectories.read_bytes()
    run.batch(0, run.row(1, reasoning=""), run.row(0))
    result = invoke(main, run)
    assert result.exit_code == 2 and "run filter_trajectories again" in result.stderr
    assert run.folder.trajectories.read_bytes() == before


def test_a_bad_dataset_row_stops_the_step_or_is_skipped(run):
    run.batch(0, run.row(0))
    run.dataset.write_bytes(b"{torn\n" + run.dataset.read_bytes())
    assert invoke(filter_rows, run, dataset=False).exit_code == 0
    result = invoke(main, run)
    assert result.exit_code == 2 and "line 1" in result.stderr
    assert "1 rows written" in merge(run, "--on_bad_row", "skip")
    assert indices(run) == [1]


def test_a_merged_row_has_the_keys_of_a_trajectory_in_its_order():
    assert MergedRow.__struct_encode_fields__ == Trajectory.__struct_encode_fields__
    assert MergedRow.__struct_defaults__ == Trajectory.__struct_defaults__
