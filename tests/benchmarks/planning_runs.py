"""Makes what bench_planning plans, in a process of its own: a dataset, and a run whose batches are all finished.

python tests/benchmarks/planning_runs.py PROMPTS BATCH_SIZE     # 0: no run
"""

import os
import sys
from pathlib import Path
from typing import Any

import measuring
import orjson
from trajectile.dataset.prompts import read_ids, read_prompts
from trajectile.rows import Metadata, PromptRow, ReasoningStats, ToolStat, Trajectory, Turn, Usage
from trajectile.run_folder.ids import Ids, make_id, remember
from trajectile.run_folder.journal import encode
from trajectile.run_folder.paths import RunFolder
from trajectile.run_folder.times import Times

assert measuring.ROOT
READING: dict[str, Any] = {"on_bad_row": "error", "max_samples": None}


def write_dataset(path: Path, prompts: int) -> None:
    """Write rows of about 150 bytes with a column of their own."""
    with path.open("wb") as file:
        for number in range(prompts):
            text = (
                f"Task {number}: look through the files of this folder, say what they are for, and write it to a file."
            )
            file.write(orjson.dumps({"prompt": text, "id": f"t-{number:07}", "level": number % 7}) + b"\n")


def write_finished(folder: RunFolder, dataset: Path, batch_size: int) -> None:
    """Write what split_dataset and run_batch leave of a run without failures."""
    folder.root.mkdir(parents=True)
    rows: list[PromptRow] = []
    number = 0
    for row in read_prompts(dataset):
        rows.append(row)
        if len(rows) == batch_size:
            _write_shard(folder, number, rows)
            rows, number = [], number + 1
    remember(folder, dataset, read_ids(dataset, **READING), **READING)


def _write_shard(folder: RunFolder, number: int, rows: list[PromptRow]) -> None:
    ids = Ids([make_id(row.prompt_key, row.ordinal) for row in rows], "")
    shard, batch = folder.shard(number), folder.batch(number)
    for path in (shard, folder.times(number)):
        path.parent.mkdir(exist_ok=True)
    shard.write_bytes(b"".join(encode(row) for row in rows))
    batch.write_bytes(b"".join(encode(_finished(row, number)) for row in rows))
    folder.times(number).write_bytes(encode(Times([(1e9 + number, 1e9 + number + 60)])))
    remember(folder, shard, ids)
    remember(folder, batch, ids)


def _finished(row: PromptRow, number: int) -> Trajectory:
    return Trajectory(
        prompt_index=row.prompt_index,
        prompt_key=row.prompt_key,
        conversations=[*row.turns, Turn("gpt", "Done.", "Nothing is there.")],
        metadata=Metadata(number, "2026-01-01T00:00:00.000+00:00", "m/1", "terminal_only", "0" * 16, 0, "", 1.0, 1.0),
        completed=True,
        partial=False,
        end_reason="finished",
        api_calls=1,
        toolsets_used=["terminal"],
        tool_stats={"terminal": ToolStat()},
        tool_error_counts={"terminal": 0},
        reasoning_stats=ReasoningStats(1, 1, 0),
        usage=Usage(),
        source=row.source,
    )


if __name__ == "__main__":
    os.fsync = lambda descriptor: None  # what is generated need not survive a power cut
    write_dataset(Path("prompts.jsonl"), int(sys.argv[1]))
    if batch_size := int(sys.argv[2]):
        write_finished(RunFolder(Path("data/bench")), Path("prompts.jsonl"), batch_size)
