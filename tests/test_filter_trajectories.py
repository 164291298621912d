import msgspec
import pytest
from filter_trajectories import main
from results_files import Run, invoke, lines_of
from trajectile.results.filters import Discard


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path, [f"prompt {n}" for n in range(5)])


def discarded(run):
    return {d.prompt_index: d for d in lines_of(run.folder.discarded, Discard)}


def test_rows_without_reasoning_and_with_unknown_tools_are_listed_with_reasons(run):
    run.batch(0, run.row(0), run.row(1, reasoning=""))
    run.batch(7, run.row(2, batch=7, calls=("rm_rf", "terminal", "", "rm_rf")))
    run.journal(8, run.row(3, batch=8, reasoning="", calls=("rm_rf",)))
    result = invoke(main, run, dataset=False)
    assert result.exit_code == 0
    assert result.output == "filter_trajectories: discarded 3 (no_reasoning 2, unknown_tool 2)\n"
    found = discarded(run)
    assert {index: d.reasons for index, d in found.items()} == {
        1: ["no_reasoning"],
        2: ["unknown_tool: rm_rf", "unknown_tool: "],
        3: ["no_reasoning", "unknown_tool: rm_rf"],
    }
    assert found[2].batch_num == 7 and found[2].file == "batch_7.jsonl" and found[2].offset == 0
    assert found[3].file == "journal/shard_8.jsonl"
    line = run.folder.batch(0).read_bytes()[found[1].offset :]
    assert msgspec.json.decode(line)["prompt_key"] == found[1].prompt_key == run.prompts[1].prompt_key


def test_calls_of_given_turns_are_not_the_models(tmp_path):
    call = {"id": "c", "type": "function", "function": {"name": "rm_rf", "arguments": "{}"}}
    asks = {"role": "assistant", "content": "", "tool_calls": [call]}
    start = [{"role": "user", "content": "a"}, asks, {"role": "tool", "tool_call_id": "c", "content": "gone"}]
    run = Run(tmp_path, [{"messages": start}, {"messages": start}])
    run.batch(0, run.row(0), run.row(1, calls=("format_c",)))
    invoke(main, run, dataset=False)
    assert {index: d.reasons for index, d in discarded(run).items()} == {1: ["unknown_tool: format_c"]}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], 1),
        (["--require_reasoning", "true", "--reasoning_disabled", "true"], 1),
        (["--require_reasoning", "auto", "--reasoning_disabled", "True"], 0),
        (["--require_reasoning", "auto", "--reasoning_disabled", "False"], 1),
        (["--require_reasoning", "False"], 0),
    ],
)
def test_reasoning_is_asked_for_as_the_options_say(run, options, expected):
    run.batch(0, run.row(0, reasoning=""))
    assert invoke(main, run, *options, dataset=False).exit_code == 0
    assert len(discarded(run)) == expected


def test_an_empty_run_discards_nothing(run):
    result = invoke(main, run, dataset=False)
    assert (result.exit_code, result.output) == (0, "filter_trajectories: discarded 0\n")
    assert run.folder.discarded.read_bytes() == b""


def test_a_folder_without_run_json_is_refused(run):
    run.folder.run_json.unlink()
    result = invoke(main, run, dataset=False)
    assert result.exit_code == 2
    assert "run.json is missing" in result.stderr
    assert not run.folder.discarded.exists()
