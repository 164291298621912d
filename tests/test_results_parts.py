"""The small parts of the statistics: durations, the card, tables."""

import io

import pytest
import yaml
from compute_statistics import main as compute
from filter_trajectories import main as filter_rows
from results_files import Run, invoke
from rich.console import Console
from trajectile.results.card import features
from trajectile.results.sessions import running_seconds, union_length
from trajectile.results.tables import print_tables
from trajectile.results.verdict import read_statistics


@pytest.mark.parametrize(
    ("intervals", "length"),
    [
        ([], 0),
        ([(5, 7)], 2),
        ([(0, 10), (2, 3), (9, 12), (20, 21)], 13),
        ([(4, 4), (6, 5)], 0),
    ],
)
def test_union_length(intervals, length):
    assert union_length(intervals) == length


def test_running_time_covers_all_shards_and_resumes(tmp_path):
    run = Run(tmp_path, ["a"])
    run.write(run.folder.times(0), {"sessions": [[100.0, 110.0], [200.0, 205.0]]})
    run.write(run.folder.times(1), {"sessions": [[105.0, 120.0]]})
    run.folder.times(2).write_bytes(b'{"sessions": [[1')
    assert running_seconds(run.folder) == 25.0


def test_features_follow_the_row_with_the_tools_as_fields():
    found = {feature["name"]: feature for feature in features(["a", "b"])}
    assert found["prompt_index"] == {"name": "prompt_index", "dtype": "int64"}
    assert found["toolsets_used"]["sequence"] == "string"
    assert [field["name"] for field in found["tool_stats"]["struct"]] == ["a", "b"]
    assert [field["name"] for field in found["tool_stats"]["struct"][0]["struct"]] == [
        "count",
        "success",
        "failure",
    ]
    assert found["tool_error_counts"]["struct"][1] == {"name": "b", "dtype": "int64"}
    turn = {field["name"]: field for field in found["conversations"]["list"]}
    assert list(turn) == ["from", "value", "reasoning", "tool_calls", "tool_call_id", "name"]
    assert [field["name"] for field in turn["tool_calls"]["list"]] == ["id", "name", "arguments"]


def test_card_opens_with_yaml_that_names_the_file_and_the_features(tmp_path):
    run = Run(tmp_path, ["a"], tools=["mcp:odd: name", "terminal"])
    invoke(filter_rows, run, dataset=False)
    invoke(compute, run)
    _, head, text = run.folder.card.read_text().split("---\n", 2)
    front = yaml.safe_load(head)
    assert front["configs"][0]["data_files"] == [{"split": "train", "path": "trajectories.jsonl"}]
    assert front["dataset_info"]["features"] == features(["mcp:odd: name", "terminal"])
    assert "0 of 1 prompts" in text


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("terminal", [True, False])
def test_tables_keep_to_the_width_and_are_plain_in_a_file(tmp_path, width, terminal):
    names = ["terminal", "mcp:a_server_with_a_rather_long_name:[bold]do_something[/bold]"]
    run = Run(tmp_path, ["a"], tools=names)
    run.batch(0, run.row(0, calls=(names[1], "terminal", names[1]), tools=names))
    invoke(filter_rows, run, dataset=False)
    invoke(compute, run)
    out = io.StringIO()
    print_tables(read_statistics(run.folder), Console(file=out, width=width, force_terminal=terminal))
    text = out.getvalue()
    if not terminal:
        assert "\x1b" not in text and text.isascii()
        assert max(map(len, text.splitlines())) <= width
    if width == 200:
        assert names[1] in text


def test_the_card_leaves_out_made_up_tools_of_discarded_rows(tmp_path):
    run = Run(tmp_path, ["a", "b"])
    offered_once = ["read_file", "terminal", "web_search"]
    run.batch(0, run.row(0, calls=("made_up",), tools=["made_up"]), run.row(1, tools=offered_once))
    invoke(filter_rows, run, dataset=False)
    invoke(compute, run)
    front = yaml.safe_load(run.folder.card.read_text().split("---\n")[1])
    assert front["dataset_info"]["features"] == features(offered_once)
