"""The formats of typed files: parquet and atif."""

import json

import msgspec
import pyarrow.parquet as pq
import pytest
import yaml
from exports_samples import (
    NESTED,
    SAMPLES,
    export,
    folder_of,
    many_prompts,
    rows_of,
    sample_run,
    summary_of,
    write_statistics,
)
from trajectile.exports import parquet_file
from trajectile.exports.example import example_of
from trajectile.exports.formats import FORMATS
from trajectile.exports.parquet_row import ParquetRow, parquet_row
from trajectile.exports.run import tools_of
from trajectile.rows import Trajectory

SCHEMA = parquet_file.arrow_schema(ParquetRow)


@pytest.fixture
def run(tmp_path):
    return sample_run(tmp_path)


@pytest.fixture
def statistics(run):
    return write_statistics(run)


def shards(run, split="train"):
    return sorted(folder_of(run, "parquet").glob(f"{split}-*.parquet"))


def test_parquet_holds_every_row_with_its_types(run, statistics):
    export(run, "--exports", "parquet")
    table = pq.read_table(shards(run))
    assert table.schema.equals(SCHEMA)
    assert not any(column.null_count for column in table.columns)
    wanted = [msgspec.json.decode(line, type=Trajectory) for line in run.folder.trajectories.read_bytes().splitlines()]
    rows = table.to_pylist()
    assert len(rows) == len(SAMPLES)
    for row, trajectory in zip(rows, wanted, strict=True):
        example = example_of(trajectory, tools_of(json.loads(row["tools"])))
        assert row == msgspec.to_builtins(parquet_row(example))
    assert rows[3]["conversations"][1]["tool_calls"][1]["arguments"] == NESTED


def test_parquet_is_compressed_with_zstd_and_has_a_page_index(run, statistics):
    export(run, "--exports", "parquet")
    column = pq.ParquetFile(shards(run)[0]).metadata.row_group(0).column(0)
    assert column.compression == "ZSTD" and column.has_offset_index and column.has_column_index


def test_parquet_card_tells_what_the_rows_are(run, statistics):
    export(run, "--exports", "parquet", "--export_only_completed", "true")
    _, head, body = (folder_of(run, "parquet") / "README.md").read_text().split("---\n", 2)
    card = yaml.safe_load(head)
    assert card["configs"][0]["data_files"] == [{"split": "train", "path": "train-*.parquet"}]
    assert card["size_categories"] == ["n<1K"]
    assert [feature["name"] for feature in card["dataset_info"]["features"]] == list(ParquetRow.__struct_fields__)
    assert "| model | `m/1` |" in body and "| terminal | 4 | 75.0% |" in body
    assert "- left out, not completed: 4" in body


def test_parquet_shards_are_cut_by_size_and_named_by_their_number(tmp_path):
    run = many_prompts(tmp_path, 50)
    rows = [json.loads(line) for line in run.folder.trajectories.read_bytes().splitlines()]
    files = parquet_file.SplitShards(tmp_path, "train", SCHEMA, shard_bytes=1_000, group_bytes=5_000)
    for row in rows:
        trajectory = msgspec.convert(row, Trajectory)
        files.write(parquet_row(example_of(trajectory, tools_of([]))))
    files.close()
    names = sorted(path.name for path in tmp_path.glob("*.parquet"))
    assert len(names) > 5 and names[0] == f"train-00000-of-{len(names):05}.parquet"
    indices = [index for name in names for index in pq.read_table(tmp_path / name)["prompt_index"].to_pylist()]
    assert indices == list(range(50))


def test_parquet_of_no_rows_is_a_file_with_a_schema(tmp_path):
    files = parquet_file.SplitShards(tmp_path, "train", SCHEMA, shard_bytes=1_000, group_bytes=5_000)
    files.close()
    [path] = tmp_path.glob("*.parquet")
    assert pq.read_table(path).num_rows == 0 and path.name == "train-00000-of-00001.parquet"


def documents(run, split="train"):
    paths = sorted((folder_of(run, "atif") / split).glob("*.json"))
    return [json.loads(path.read_bytes()) for path in paths]


def test_atif_has_a_file_for_each_row(run):
    export(run, "--exports", "atif")
    found = documents(run)
    assert [document["extra"]["prompt_index"] for document in found] == list(range(len(SAMPLES)))
    assert {document["schema_version"] for document in found} == {"ATIF-v1.8"}
    assert len({document["trajectory_id"] for document in found}) == len(SAMPLES)


def test_every_format_takes_rows_whose_prompts_have_left_the_dataset(tmp_path):
    run = sample_run(tmp_path, ["no_tools", "one_call"])
    kept = [msgspec.structs.replace(row, prompt_index=-1) for row in run.merged()]
    run.write(run.folder.trajectories, *run.merged(), *kept, kept[0])
    write_statistics(run)
    for name in FORMATS:
        export(run, "--exports", name)
    places = [0, 1, -1, -1, -1]
    for name in ("messages", "hermes", "llamafactory"):
        assert [row["prompt_index"] for row in rows_of(run, name)] == places
    assert pq.read_table(shards(run)[0])["prompt_index"].to_pylist() == places
    assert [document["extra"]["prompt_index"] for document in documents(run)] == places


def test_atif_steps_hold_the_results_of_their_calls(tmp_path):
    run = sample_run(tmp_path, ["parallel"])
    export(run, "--exports", "atif")
    [document] = documents(run)
    ask, act, answer = document["steps"]
    assert ask == {"step_id": 1, "source": "user", "message": "read two files"}
    assert act["tool_calls"][1] == {
        "tool_call_id": "p2",
        "function_name": "read_file",
        "arguments": json.loads(NESTED),
    }
    assert act["observation"]["results"][0] == {"content": "text of a", "source_call_id": "p1"}
    assert answer["step_id"] == 3 and answer["reasoning_content"] == "I have seen the output."
    assert document["final_metrics"]["total_steps"] == 3
    assert document["final_metrics"]["total_prompt_tokens"] == 100
    assert len(document["agent"]["tool_definitions"]) == 6


def test_atif_keeps_arguments_that_are_no_object_under_a_name(tmp_path):
    run = sample_run(tmp_path, ["bad_arguments", "list_arguments"])
    export(run, "--exports", "atif")
    arguments = [document["steps"][1]["tool_calls"][0]["arguments"] for document in documents(run)]
    assert arguments == [{"_raw": '{"command": "l'}, {"_raw": "[1]"}]
    assert summary_of(run, "atif").noted == {"raw_arguments": 2}


def test_atif_marks_given_steps(tmp_path):
    run = sample_run(tmp_path, ["given_turns"])
    export(run, "--exports", "atif")
    steps = documents(run)[0]["steps"]
    assert [step["source"] for step in steps] == ["system", "user", "agent", "agent", "user", "agent", "agent"]
    assert [step.get("is_copied_context") for step in steps if step["source"] == "agent"] == [True, True, None, None]
    assert steps[2]["observation"]["results"][0]["source_call_id"] == steps[2]["tool_calls"][0]["tool_call_id"]


def test_atif_splits_are_folders(tmp_path):
    run = many_prompts(tmp_path, 40)
    export(run, "--exports", "atif", "--export_validation_fraction", "0.5")
    counts = summary_of(run, "atif").splits
    assert {split: len(documents(run, split)) for split in counts} == counts and len(counts) == 2
