"""Builds run folders for the tests of the result steps, out of the real row structs."""

from pathlib import Path
from typing import Any

import msgspec
import orjson
from click.testing import CliRunner, Result
from trajectile.dataset.prompts import read_prompts
from trajectile.rows import (
    Metadata,
    PromptRow,
    ReasoningStats,
    ToolCall,
    ToolStat,
    Trajectory,
    Turn,
    Usage,
)
from trajectile.run_folder.journal import ENCODER, Failure
from trajectile.run_folder.paths import RunFolder

TOOLS = ["read_file", "terminal"]


class Run:
    """A run folder with a dataset beside it: `prompts` are dataset rows, each a text or a dictionary."""

    def __init__(self, root: Path, prompts: list[Any], tools: list[str] = TOOLS) -> None:
        self.folder = RunFolder(root / "run")
        self.folder.root.mkdir(parents=True, exist_ok=True)
        self.dataset = root / "prompts.jsonl"
        settings = {"model": "m/1", "distribution": "default", "batch_size": 2}
        self.write(self.folder.run_json, {"run_name": "run", "settings": settings, "tools": tools})
        self.set_dataset(prompts)

    def set_dataset(self, prompts: list[Any]) -> None:
        rows = [{"prompt": prompt} if isinstance(prompt, str) else prompt for prompt in prompts]
        self.write(self.dataset, *rows)
        self.prompts: list[PromptRow] = list(read_prompts(self.dataset))

    def write(self, path: Path, *records: Any, tail: bytes = b"") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        encoded = [ENCODER.encode(r) if isinstance(r, msgspec.Struct) else orjson.dumps(r) for r in records]
        path.write_bytes(b"".join(line + b"\n" for line in encoded) + tail)
        return path

    def batch(self, number: int, *rows: Any, tail: bytes = b"") -> Path:
        return self.write(self.folder.batch(number), *rows, tail=tail)

    def journal(self, number: int, *rows: Any, tail: bytes = b"") -> Path:
        return self.write(self.folder.journal(number), *rows, tail=tail)

    def ledger(self, number: int, *failures: Any, tail: bytes = b"") -> Path:
        return self.write(self.folder.ledger(number), *failures, tail=tail)

    def row(self, index: int, **options: Any) -> Trajectory:
        return trajectory(self.prompts[index], **options)

    def merged(self) -> list[Trajectory]:
        return lines_of(self.folder.trajectories, Trajectory)


def lines_of(path: Path, kind: Any) -> list[Any]:
    """Decode the lines of a file; they end at \\n alone."""
    return [msgspec.json.decode(line, type=kind) for line in path.read_bytes().split(b"\n")[:-1]]


def trajectory(
    prompt: PromptRow,
    *,
    batch: int = 0,
    calls: tuple[str, ...] = ("terminal",),
    reasoning: str = "because",
    answer: str = "done",
    seconds: float = 2.0,
    tools: list[str] = TOOLS,
    **changes: Any,
) -> Trajectory:
    """Return a finished row: one assistant turn for each call and one for the answer."""
    turns = list(prompt.turns)
    for name in calls:
        turns.append(Turn("gpt", reasoning=reasoning, tool_calls=[ToolCall("c1", name, "{}")]))
        turns.append(Turn("tool", "output", tool_call_id="c1", name=name))
    turns.append(Turn("gpt", answer, reasoning=reasoning))
    assistant = len(calls) + 1
    reasoned = assistant if reasoning else 0
    row = Trajectory(
        prompt_index=prompt.prompt_index,
        prompt_key=prompt.prompt_key,
        conversations=turns,
        metadata=Metadata(
            batch, "2026-11-29T16:35:00.25+00:00", "m/1", "default", "abc", prompt.ordinal, "", seconds, 1.5
        ),
        completed=True,
        partial=False,
        end_reason="finished",
        api_calls=assistant,
        toolsets_used=["terminal"],
        tool_stats={name: ToolStat(calls.count(name), calls.count(name), 0) for name in tools},
        tool_error_counts=dict.fromkeys(tools, 0),
        reasoning_stats=ReasoningStats(assistant, reasoned, assistant - reasoned),
        usage=Usage(100, 20, 10, 5, 0.25),
        source=prompt.source,
    )
    return msgspec.structs.replace(row, **changes)


def failure(prompt: PromptRow, kind: str, minute: int, **changes: Any) -> Failure:
    """Return a failed attempt `minute` minutes past the hour."""
    made = Failure(
        prompt.prompt_index,
        prompt.prompt_key,
        prompt.ordinal,
        0,
        1,
        kind,
        f"{kind} happened",
        f"2026-11-29T16:{minute:02}:00.5+00:00",
    )
    return msgspec.structs.replace(made, **changes)


def invoke(command: Any, run: Run, *options: str, dataset: bool = True) -> Result:
    """Run a step on a run folder in this process."""
    files = ["--run_folder", str(run.folder.root)]
    if dataset:
        files += ["--dataset_file", str(run.dataset)]
    return CliRunner().invoke(command, [*files, *options], catch_exceptions=False)
