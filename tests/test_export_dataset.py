import re
import shutil

import orjson
import pytest
from export_dataset import main
from exports_samples import (
    SAMPLES,
    export,
    folder_of,
    left_out,
    many_prompts,
    rows_of,
    sample_run,
    summary_of,
    write_statistics,
)
from results_files import invoke, lines_of
from trajectile.exports.formats import FORMATS
from trajectile.rows import Trajectory

ALL = [option for name in FORMATS for option in ("--exports", name)]


@pytest.fixture
def run(tmp_path):
    return sample_run(tmp_path)


@pytest.fixture
def statistics(run):
    return write_statistics(run)


def labels_of(run, name="messages", split="train"):
    return [list(SAMPLES)[row["prompt_index"]] for row in rows_of(run, name, split)]


def content_of(root):
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_all_formats_are_written_at_once_each_with_a_summary_and_a_readme(run, statistics):
    output = export(run, *ALL)
    assert [line.split(":")[1].strip() for line in output.splitlines()] == list(FORMATS)
    overview = (run.folder.root / "exports" / "README.md").read_text()
    for name in FORMATS:
        summary = summary_of(run, name)
        assert summary.rows_in == len(SAMPLES)
        assert summary.rows_out + sum(summary.left_out.values()) == len(SAMPLES)
        assert sum(summary.splits.values()) == summary.rows_out
        assert f"{summary.rows_out} of {len(SAMPLES)} trajectories" in (folder_of(run, name) / "README.md").read_text()
        assert f"- `{name}`: " in overview


def test_what_is_left_out_is_named(run):
    output = export(run, "--exports", "messages")
    expected = {
        "bad_arguments": "arguments_not_an_object",
        "list_arguments": "arguments_not_an_object",
        "nothing_made": "no_assistant_turn",
    }
    assert left_out(run, "messages") == expected
    assert "; left out: 2 arguments_not_an_object, 1 no_assistant_turn; noted: 1 late_system_turn\n" in output
    assert labels_of(run) == [name for name in SAMPLES if name not in expected]


def test_only_completed_rows(run):
    export(run, "--exports", "messages", "--export_only_completed", "true")
    assert {name for name, why in left_out(run, "messages").items() if why == "not_completed"} == {
        "max_turns", "only_failures", "empty_answer", "nothing_made",
    }  # fmt: skip


def test_minimum_of_turns_counts_the_models_own(run):
    export(run, "--exports", "messages", "--export_min_turns", "3")
    assert labels_of(run) == ["failing_call"]


def test_maximum_of_tokens_is_an_estimate_from_the_size(tmp_path):
    run = sample_run(tmp_path, ["no_tools", "one_call"])
    rows = lines_of(run.folder.trajectories, Trajectory)
    rows[1].conversations[2].value = "x" * 35_000
    run.write(run.folder.trajectories, *rows)
    export(run, "--exports", "messages", "--export_max_tokens", "10000")
    assert summary_of(run, "messages").left_out == {"too_many_tokens": 1}
    export(run, "--exports", "messages", "--export_max_tokens", "11500")
    assert summary_of(run, "messages").left_out == {}


def test_failing_calls_go_with_their_results_and_empty_turns(run):
    export(run, "--exports", "messages", "--export_drop_failed_calls", "true")
    rows = dict(zip(labels_of(run), rows_of(run), strict=True))
    assert [m["role"] for m in rows["failing_call"]["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert [m["role"] for m in rows["bad_arguments"]["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert [m["role"] for m in rows["list_arguments"]["messages"]] == ["user", "assistant"]
    assert left_out(run, "messages") == {"only_failures": "no_assistant_turn", "nothing_made": "no_assistant_turn"}


def test_one_of_two_parallel_calls_can_fail(tmp_path):
    run = sample_run(tmp_path, ["parallel"])
    rows = lines_of(run.folder.trajectories, Trajectory)
    rows[0].conversations[2].value = "Error: no such file"
    run.write(run.folder.trajectories, *rows)
    export(run, "--exports", "messages", "--export_drop_failed_calls", "true")
    [row] = rows_of(run)
    assert [call["id"] for call in row["messages"][1]["tool_calls"]] == ["p2"]
    assert [m.get("tool_call_id") for m in row["messages"] if m["role"] == "tool"] == ["p2"]


@pytest.mark.parametrize(("kind", "expected"), [("conversations", 1), ("prompts", 2), ("none", 0)])
def test_duplicates(tmp_path, kind, expected):
    run = sample_run(tmp_path, ["one_call", "one_call_again", "one_call_again"])
    rows = lines_of(run.folder.trajectories, Trajectory)
    rows[1].conversations[1].tool_calls[0].id = rows[1].conversations[2].tool_call_id = "other"
    rows[2].conversations[-1].value = "Another answer."
    run.write(run.folder.trajectories, *rows)
    export(run, "--exports", "messages", "--export_deduplicate", kind)
    assert summary_of(run, "messages").left_out.get("duplicate", 0) == expected


def test_validation_split_keeps_the_rows_of_a_prompt_together(tmp_path):
    run = many_prompts(tmp_path)
    export(run, "--exports", "messages", "--export_validation_fraction", "0.25")
    keys = {split: {row["prompt_key"] for row in rows_of(run, split=split)} for split in ("train", "validation")}
    assert not keys["train"] & keys["validation"]
    assert 70 < summary_of(run, "messages").splits["validation"] < 130
    export(run, "--exports", "messages", "--export_validation_fraction", "0.25", "--seed", "1")
    assert {row["prompt_key"] for row in rows_of(run, split="validation")} != keys["validation"]


def test_a_split_of_a_prompt_does_not_depend_on_the_other_rows(tmp_path):
    run = many_prompts(tmp_path)
    export(run, "--exports", "messages", "--export_validation_fraction", "0.25")
    before = {row["prompt_key"] for row in rows_of(run, split="validation")}
    rows = lines_of(run.folder.trajectories, Trajectory)
    run.write(run.folder.trajectories, *rows[:200])
    export(run, "--exports", "messages", "--export_validation_fraction", "0.25")
    after = {row["prompt_key"] for row in rows_of(run, split="validation")}
    assert after == before & {row.prompt_key for row in rows[:200]} and after


def test_an_export_without_validation_replaces_one_with_it(tmp_path):
    run = many_prompts(tmp_path, 40)
    export(run, "--exports", "messages", "--export_validation_fraction", "0.5")
    assert (folder_of(run, "messages") / "validation.jsonl").exists()
    export(run, "--exports", "messages")
    assert not (folder_of(run, "messages") / "validation.jsonl").exists()
    assert len(rows_of(run)) == 40


def test_same_input_gives_the_same_bytes(run, statistics):
    export(run, *ALL, "--export_validation_fraction", "0.3")
    first = content_of(run.folder.root / "exports")
    assert len(first) > len(SAMPLES)
    export(run, *ALL, "--export_validation_fraction", "0.3")
    assert content_of(run.folder.root / "exports") == first


def test_batch_numbers_and_times_leave_no_trace(run, statistics):
    export(run, *ALL)
    first = content_of(run.folder.root / "exports")
    rows = lines_of(run.folder.trajectories, Trajectory)
    for row in rows:
        row.metadata.batch_num, row.metadata.timestamp = 77, "2027-01-01T00:00:00.5+00:00"
        row.metadata.duration_seconds, row.metadata.model_seconds = 99.5, 98.5
    run.write(run.folder.trajectories, *rows)
    run.folder.statistics.write_bytes(orjson.dumps(statistics | {"duration_seconds": 4.0, "batch_size": 7}))
    export(run, *ALL)
    assert content_of(run.folder.root / "exports") == first


def test_formats_do_not_disturb_each_other(run, statistics):
    export(run, *ALL)
    together = content_of(run.folder.root / "exports")
    shutil.rmtree(run.folder.root / "exports")
    for name in FORMATS:
        export(run, "--exports", name)
    assert content_of(run.folder.root / "exports") == together


def test_a_damaged_line_is_refused_and_leaves_the_old_export(run):
    export(run, "--exports", "messages")
    before = content_of(run.folder.root / "exports")
    with run.folder.trajectories.open("ab") as file:
        file.write(b'{"prompt_index": 3')
    result = invoke(main, run, "--exports", "messages", dataset=False)
    assert result.exit_code == 2
    assert re.search(rf"trajectories.jsonl line {len(SAMPLES) + 1} is damaged", result.output)
    assert content_of(run.folder.root / "exports") == before
    assert names_in(run.folder.root / "exports") == ["README.md", "messages"]


def test_leftovers_of_a_killed_export_are_cleared(run):
    for leftover in (".messages.new", ".messages.old"):
        (run.folder.root / "exports" / leftover).mkdir(parents=True)
        (run.folder.root / "exports" / leftover / "validation.jsonl").write_text("torn")
    export(run, "--exports", "messages")
    assert names_in(run.folder.root / "exports") == ["README.md", "messages"]
    assert "validation.jsonl" not in names_in(folder_of(run, "messages"))


@pytest.mark.parametrize(
    ("missing", "name"), [("trajectories", "atif"), ("run_json", "atif"), ("statistics", "parquet")]
)
def test_what_is_missing_is_named(run, missing, name):
    path = getattr(run.folder, missing)
    path.unlink(missing_ok=True)
    result = invoke(main, run, "--exports", name, dataset=False)
    assert result.exit_code == 2 and f"{path} is missing" in result.output


def test_formats_and_values_are_checked(run):
    for options, accepted in {
        ("--exports", "sharegpt"): "'messages'",
        ("--exports", "messages", "--export_validation_fraction", "1"): "0<=x<1",
        ("--exports", "messages", "--export_arguments", "text"): "'object', 'string'",
        (): "--exports",
    }.items():
        result = invoke(main, run, *options, dataset=False)
        assert result.exit_code == 2 and accepted in result.output


def test_an_empty_run_exports_empty_files(tmp_path):
    run = sample_run(tmp_path)
    run.folder.trajectories.write_bytes(b"")
    export(run, "--exports", "messages", "--exports", "llamafactory", "--exports", "atif")
    assert (folder_of(run, "messages") / "train.jsonl").read_bytes() == b""
    assert summary_of(run, "atif").splits == {"train": 0}
