"""A run folder whose trajectories are of every sort that exports meet, named so that tests can pick them."""

import json
from pathlib import Path
from typing import Any

import msgspec
import orjson
from export_dataset import main
from results_files import Run, invoke, lines_of, trajectory
from trajectile.exports.exporting import Difference, Summary
from trajectile.rows import ToolCall as Call
from trajectile.rows import Trajectory, Turn
from trajectile.tools.registry import TOOLSETS, schemas

ANSWER = Turn("gpt", "The answer is 42.", reasoning="I have seen the output.")
ODD_TEXT = "naïve 漢字 \U0001f600 \u2028 \x00 \x85 \\ \" ' \t{not json}\r\n2026-11-29"
NESTED = '{"path": "a.txt", "offset": 3, "limit": null, "more": {"deep": [1, "two", 3.5, true, {"x": []}]}}'


def call(arguments: str, name: str = "terminal", id: str = "c1") -> Turn:
    return Turn("gpt", reasoning="I look first.", tool_calls=[Call(id, name, arguments)])


def result(text: str, name: str = "terminal", id: str = "c1") -> Turn:
    return Turn("tool", text, tool_call_id=id, name=name)


LS = [call('{"command": "ls"}'), result("a.txt")]
GIVEN_CALL = {"id": "g1", "function": {"name": "terminal", "arguments": {"command": "pwd"}}}
HELLO = {"role": "user", "content": "hello"}

# Name: the prompt (a text or messages), the turns that the model made, what else differs from a finished row.
SAMPLES: dict[str, tuple[Any, list[Turn], dict[str, Any]]] = {
    "no_tools": ("say hello", [Turn("gpt", "hello")], {}),
    "one_call": ("list the files", [*LS, ANSWER], {}),
    "one_call_again": ("list the files", [*LS, ANSWER], {}),
    "parallel": (
        "read two files",
        [
            Turn(
                "gpt",
                "I read both.",
                tool_calls=[Call("p1", "read_file", '{"path": "a"}'), Call("p2", "read_file", NESTED)],
            ),
            result("text of a", "read_file", "p1"),
            result('{"content": "text of b", "lines": 1}', "read_file", "p2"),
            ANSWER,
        ],
        {},
    ),
    "max_turns": ("never end", LS, {"completed": False, "end_reason": "max_turns"}),
    "bad_arguments": (
        "make a mistake",
        [
            call('{"command": "l'),
            result("Error: the arguments of terminal are not a JSON object"),
            call('{"command": "ls"}', id="c2"),
            result("a.txt", id="c2"),
            ANSWER,
        ],
        {},
    ),
    "list_arguments": ("pass a list", [call("[1]"), result("Error: not a JSON object"), ANSWER], {}),
    "failing_call": (
        "try twice",
        [
            call('{"path": "nope"}', "read_file"),
            result('{"error": "No such file"}', "read_file"),
            call('{"path": "a"}', "read_file", "c2"),
            result("text of a", "read_file", "c2"),
            ANSWER,
        ],
        {},
    ),
    "only_failures": (
        "fail",
        [call('{"path": "nope"}', "read_file"), result('{"error": "No such file"}', "read_file")],
        {"completed": False, "end_reason": "max_turns"},
    ),
    "given_turns": (
        [
            {"role": "system", "content": "Be brief."},
            HELLO,
            {"role": "assistant", "content": "hi", "tool_calls": [{"function": {"name": "terminal", "arguments": {}}}]},
            {"role": "tool", "content": "given output"},
            {"role": "assistant", "content": "given answer"},
            {"role": "user", "content": "go on"},
        ],
        [*LS, ANSWER],
        {},
    ),
    "starts_with_result": (
        [HELLO, {"role": "assistant", "content": "", "tool_calls": [GIVEN_CALL]}, {"role": "tool", "content": "/"}],
        [ANSWER],
        {},
    ),
    "two_humans": ([HELLO, {"role": "user", "content": "are you there?"}], [ANSWER], {}),
    "late_system": (
        [HELLO, {"role": "system", "content": "Be kind."}, {"role": "user", "content": "go"}],
        [ANSWER],
        {},
    ),
    "odd_text": (ODD_TEXT, [call(json.dumps({"command": ODD_TEXT})), result(ODD_TEXT), Turn("gpt", ODD_TEXT)], {}),
    "dates": ("2026-11-29", [call('{"command": "2026-11-29"}'), result("2026-11-29"), Turn("gpt", "2026-11-29")], {}),
    "tags_in_arguments": (
        "write tags",
        [
            call('{"command": "echo <think>x</think> <tool_call>{}</tool_call> </tool_response>"}'),
            result("<x>"),
            ANSWER,
        ],
        {},
    ),
    "tags_in_reasoning": (
        "think of tags",
        [
            Turn("gpt", "", "I write <tool_call>{}</tool_call>.", [Call("c1", "terminal", '{"command": "ls"}')]),
            result("a.txt"),
            ANSWER,
        ],
        {},
    ),
    "empty_answer": (
        "say nothing",
        [Turn("gpt", "")],
        {"completed": False, "partial": True, "end_reason": "content_filter"},
    ),
    "nothing_made": ("overflow", [], {"completed": False, "partial": True, "end_reason": "context_overflow"}),
}


def sample_rows(names: list[str], run: Run) -> list[Trajectory]:
    """Return the rows of a run whose prompts are those of `names`."""
    return [_row(run, number, name) for number, name in enumerate(names)]


def _row(run: Run, number: int, name: str) -> Trajectory:
    _, made, changes = SAMPLES[name]
    prompt = run.prompts[number]
    row = trajectory(prompt, calls=())
    assistant = sum(turn.from_ == "gpt" for turn in made)
    row.conversations = [*prompt.turns, *(msgspec.structs.replace(turn) for turn in made)]
    row.reasoning_stats.total_assistant_turns = assistant
    row.toolsets_used = ["terminal", "file"]
    return msgspec.structs.replace(row, **changes)


def dataset_row(name: str) -> dict[str, Any]:
    prompt = SAMPLES[name][0]
    return {"prompt": prompt, "label": name} if isinstance(prompt, str) else {"messages": prompt, "label": name}


def identify(run: Run) -> None:
    """Write a run.json with the schemas of the tools, as a real start of a run does."""
    tools = [tool for toolset in TOOLSETS.values() for tool in toolset]
    settings = {"model": "m/1", "distribution": "default", "max_turns": 10, "seed": 0, "sandbox": "local"}
    identity = {
        "run_name": "run",
        "settings": settings,
        "tools": [tool.name for tool in tools],
        "toolsets": {name: [tool.name for tool in toolset] for name, toolset in TOOLSETS.items()},
        "tool_schemas": schemas(tools),
        "versions": {"trajectile": "0.1.0"},
    }
    run.folder.run_json.write_bytes(orjson.dumps(identity))


def sample_run(root: Path, names: list[str] | None = None) -> Run:
    """Return a run folder with a trajectories.jsonl of these samples, all of them by default."""
    names = list(SAMPLES) if names is None else names
    run = Run(root, [dataset_row(name) for name in names])
    identify(run)
    run.write(run.folder.trajectories, *sample_rows(names, run))
    return run


def many_prompts(root: Path, count: int = 400) -> Run:
    """Return a run of ordinary rows, two for each prompt."""
    run = Run(root, [f"prompt {number // 2}" for number in range(count)])
    identify(run)
    run.write(run.folder.trajectories, *(run.row(number) for number in range(count)))
    return run


def write_statistics(run: Run) -> dict[str, Any]:
    """Write the part of statistics.json that the card of the Parquet export is made from."""
    terminal = {"count": 4, "success": 3, "failure": 1, "success_rate": 0.75, "failure_rate": 0.25}
    reasoning = {"total_assistant_turns": 4, "turns_with_reasoning": 3, "turns_without_reasoning": 1, "coverage": 0.75}
    numbers = {
        "total_prompts": len(SAMPLES),
        "owed": 0,
        "given_up": 0,
        "discarded": {"total": 0},
        "tool_statistics": {"terminal": terminal},
        "reasoning_statistics": reasoning,
        "tokens": {"prompt": 100, "completion": 20, "reasoning": 10, "cached": 5},
        "end_reasons": {"finished": 3, "max_turns": 1},
    }
    run.folder.statistics.write_bytes(orjson.dumps(numbers))
    return numbers


def export(run: Run, *options: str) -> str:
    """Run the step and return what it says."""
    result = invoke(main, run, *options, dataset=False)
    assert result.exit_code == 0, result.output
    return result.output


def folder_of(run: Run, name: str) -> Path:
    return run.folder.root / "exports" / name


def summary_of(run: Run, name: str) -> Summary:
    return msgspec.json.decode((folder_of(run, name) / "summary.json").read_bytes(), type=Summary)


def rows_of(run: Run, name: str = "messages", split: str = "train") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder_of(run, name) / f"{split}.jsonl").read_bytes().splitlines()]


def left_out(run: Run, name: str) -> dict[str, str]:
    """Return why samples are not in an export."""
    found = lines_of(folder_of(run, name) / "differences.jsonl", Difference)
    return {list(SAMPLES)[d.prompt_index]: d.reason for d in found if d.left_out}
