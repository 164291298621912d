"""One ATIF file (Agent Trajectory Interchange Format) a trajectory."""

from pathlib import Path
from typing import Any

import msgspec

from trajectile.agent.calls import parse_arguments
from trajectile.exports.card import differences, write_text
from trajectile.exports.example import Block, Example, blocks
from trajectile.exports.format import Counts, Target, Writer
from trajectile.rows import SUPERSEDED, ToolCall, Trajectory, Turn
from trajectile.run_folder.journal import ENCODER

VERSION = "ATIF-v1.8"
SOURCES = {"human": "user", "gpt": "agent", "system": "system"}
DROPPED = "Failing tool calls were taken out of the steps; final_metrics counts them."
BODY = """# ATIF trajectories

{differences}

One file a trajectory, {version}, in a folder for each split, named after the index of the prompt, its key and
the number of the row among equal prompts. Arguments that are no JSON object stand under `_raw`. Steps of the
agent that came with the prompt are marked `is_copied_context`. Validate with
`harbor.utils.trajectory_validator`; read with any JSON parser.
"""


class Agent(msgspec.Struct):
    name: str
    version: str
    model_name: str
    tool_definitions: msgspec.Raw
    extra: dict[str, Any]


class Call(msgspec.Struct):
    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]


class Result(msgspec.Struct, omit_defaults=True):
    content: str
    source_call_id: str | None = None
    extra: dict[str, Any] | None = None


class Observation(msgspec.Struct):
    results: list[Result]


class Step(msgspec.Struct, omit_defaults=True):
    step_id: int
    source: str
    message: str
    reasoning_content: str | None = None
    tool_calls: list[Call] | None = None
    observation: Observation | None = None
    is_copied_context: bool | None = None


class FinalMetrics(msgspec.Struct):
    total_prompt_tokens: int
    total_completion_tokens: int
    total_cached_tokens: int
    total_cost_usd: float
    total_steps: int
    extra: dict[str, Any]


class Document(msgspec.Struct, omit_defaults=True):
    schema_version: str
    session_id: str
    trajectory_id: str
    agent: Agent
    steps: list[Step]
    final_metrics: FinalMetrics
    extra: dict[str, Any]
    notes: str | None = None


class AtifWriter(Writer):
    name = "atif"
    load = "ATIF v1.8, one JSON file a trajectory: `exports/atif/train/*.json`"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._folders: dict[str, Path] = {}
        self._superseded = 0

    def add(self, example: Example, split: str) -> list[str]:
        if split not in self._folders:
            self._folders[split] = self.target.folder / split
            self._folders[split].mkdir()
        row = example.row
        with (self._folders[split] / self._name(row)).open("xb") as file:
            file.write(ENCODER.encode(self._document(example)))
        raw = any(parse_arguments(call.arguments) is None for turn in example.turns for call in turn.tool_calls)
        return ["raw_arguments"] if raw else []

    def _name(self, row: Trajectory) -> str:
        """Name a file by the prompt's place in the dataset, after those the rows of prompts that have left it."""
        place = f"{row.prompt_index:06}"
        if row.prompt_index == SUPERSEDED:
            place, self._superseded = f"superseded_{self._superseded:06}", self._superseded + 1
        return f"{place}_{row.prompt_key[:12]}_{row.metadata.ordinal}.json"

    def finish(self, counts: Counts) -> None:
        body = BODY.format(differences=differences(counts), version=VERSION)
        write_text(self.target.folder / "README.md", body)

    def _document(self, example: Example) -> Document:
        row, run = example.row, self.target.run
        steps = [_step(number, block) for number, block in enumerate(blocks(example), 1)]
        return Document(
            schema_version=VERSION,
            session_id=run.run_name,
            trajectory_id=f"{row.prompt_key}-{row.metadata.ordinal}",
            agent=Agent(
                name="trajectile",
                version=run.versions.get("trajectile", "unknown"),
                model_name=row.metadata.model,
                tool_definitions=msgspec.Raw(example.tools.text),
                extra={"toolsets": row.toolsets_used, "distribution": row.metadata.distribution},
            ),
            steps=steps,
            final_metrics=_metrics(row, len(steps)),
            extra=_extra(row),
            notes=DROPPED if self.target.options.drop_failed_calls else None,
        )


def _step(number: int, block: Block) -> Step:
    turn = block.turn
    ids = {call.id for call in turn.tool_calls}
    return Step(
        number,
        SOURCES[turn.from_],
        turn.value,
        reasoning_content=turn.reasoning or None if turn.from_ == "gpt" else None,
        tool_calls=[_call(call) for call in turn.tool_calls] or None if turn.from_ == "gpt" else None,
        observation=Observation([_result(result, ids) for result in block.results]) if block.results else None,
        is_copied_context=True if block.given and turn.from_ == "gpt" else None,
    )


def _call(call: ToolCall) -> Call:
    arguments = parse_arguments(call.arguments)
    return Call(call.id, call.name, {"_raw": call.arguments} if arguments is None else arguments)


def _result(turn: Turn, ids: set[str]) -> Result:
    if turn.tool_call_id in ids:
        return Result(turn.value, turn.tool_call_id)
    return Result(turn.value, extra={"tool_call_id": turn.tool_call_id, "name": turn.name})


def _metrics(row: Trajectory, steps: int) -> FinalMetrics:
    usage = row.usage
    extra = {"reasoning_tokens": usage.reasoning_tokens, "api_calls": row.api_calls}
    return FinalMetrics(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.cost, steps, extra)


def _extra(row: Trajectory) -> dict[str, Any]:
    return {
        "prompt_index": row.prompt_index,
        "prompt_key": row.prompt_key,
        "ordinal": row.metadata.ordinal,
        "image": row.metadata.image,
        "settings_digest": row.metadata.settings_digest,
        "trimmed_results": row.metadata.trimmed_results,
        "completed": row.completed,
        "partial": row.partial,
        "end_reason": row.end_reason,
        "source": row.source,
    }
