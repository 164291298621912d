"""Builds runs of many kinds of rows for the tests of the report, the viewer and the comparison."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from compute_statistics import main as compute_statistics
from filter_trajectories import main as filter_trajectories
from results_files import Run, failure, invoke
from trajectile.rows import ReasoningStats, ToolCall, ToolStat, Trajectory, Turn, Usage
from trajectile.run_folder.identity import Identity

TOOLS = ["terminal", "read_file", "write_file", "patch", "search_files", "web_search", "process"]
ENDS = ["finished"] * 12 + ["max_turns", "max_turns", "context_overflow", "invalid_tool_calls", "time_limit"]
KINDS = ["rate_limit", "rate_limit", "timeout", "sandbox_died"]
START = datetime(2026, 11, 29, 9, tzinfo=UTC)
BATCH_ROWS = 100
HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=2'>"
    '<svg onload="window.hacked=3"> \u2028 \u2029 \x1b[31m <!-- --> ]]> ${window.hacked=4} \\u003c {digest} '
    "/* script */"
)


def identity(**changes: Any) -> Identity:
    frozen = {"model": "m/1", "distribution": "default", "max_turns": 10, "temperature": 0.7, "seed": 0}
    made = Identity(
        run_name="run",
        created="2026-11-29T09:00:00+00:00",
        frozen=frozen,
        settings_digest="abc",
        history={"abc": frozen},
        settings={**frozen, "batch_size": BATCH_ROWS, "concurrency": 8, "ephemeral_note": HOSTILE},
        chances={"terminal": 100.0, "file": 60.0},
        dropped_toolsets=[],
        tools=sorted(TOOLS),
        tool_schemas=[],
        dataset={"file": "prompts.jsonl", "prompts": 3, "sha256": "0" * 64},
        isolation="Commands run in bubblewrap.",
        versions={"python": "3.11.7", "trajectile": "0.1.0"},
        git_commit="0123456789abcdef",
    )
    return msgspec.structs.replace(made, **changes)


def make_run(root: Path, rows: int, *, seed: int = 0, failures: int = 0, owed: int = 0, **changes: Any) -> Run:
    """Write a run of `rows` finished prompts and `owed` others; every kind of row is among the first 20."""
    chance = random.Random(seed)
    run = Run(root, [prompt_text(n) for n in range(rows + owed)])
    run.write(run.folder.run_json, identity(**changes))
    for batch in range(0, rows, BATCH_ROWS):
        numbers = list(range(batch, min(rows, batch + BATCH_ROWS)))
        run.batch(batch // BATCH_ROWS, *(varied_row(run, n, chance) for n in numbers))
    run.ledger(0, *(_failed(run, n, chance) for n in range(failures)))
    return run


def finish(run: Run) -> Run:
    """Filter and count a run, as the steps before the report do."""
    for command, dataset in ((filter_trajectories, False), (compute_statistics, True)):
        result = invoke(command, run, dataset=dataset)
        assert result.exit_code == 0, result.output
    return run


def prompt_text(number: int) -> str:
    subject = ["the log files", "a parser for dates", "the failing test", "the largest folder", "this CSV file"][
        number % 5
    ]
    if number == 3:
        return f"Hostile prompt {number} {HOSTILE}"
    return f"Task {number}: look at {subject}, say what is wrong and mend it. Keep the change small.\n\nDo not guess."


def varied_row(run: Run, number: int, chance: random.Random) -> Trajectory:
    calls = [chance.choice(TOOLS[: 3 + number % 5]) for _ in range(chance.choice([0, 1, 1, 2, 3, 4, 6, 9]))]
    reasons = number % 7 != 5
    turns, stats = list(run.prompts[number].turns), {name: ToolStat() for name in TOOLS}
    if number % 11 == 0:
        turns.insert(0, Turn("system", "You are careful. You use tools where they help."))
    for n, name in enumerate(calls):
        failed = chance.random() < 0.15
        stats[name].count += 1
        stats[name].failure += failed
        stats[name].success += not failed
        turns.append(_call(number, n, name, reasons and chance.random() < 0.9))
        turns.append(Turn("tool", _result(number, n, failed), tool_call_id=f"call_{n}", name=name))
    end = ENDS[number % len(ENDS)]
    if end == "finished":
        turns.append(Turn("gpt", _answer(number), reasoning="The output settles it." if reasons else ""))
    assistant = [turn for turn in turns if turn.from_ == "gpt"]
    reasoned = sum(bool(turn.reasoning) for turn in assistant)
    seconds = chance.lognormvariate(3, 0.8)
    row = run.row(number, batch=number // BATCH_ROWS)
    return msgspec.structs.replace(
        row,
        conversations=turns,
        metadata=msgspec.structs.replace(
            row.metadata,
            timestamp=(START + timedelta(seconds=number * 7 + chance.random() * 60)).isoformat(),
            duration_seconds=round(seconds, 3),
            model_seconds=round(seconds * chance.uniform(0.5, 0.95), 3),
        ),
        completed=end == "finished",
        partial=end in ("context_overflow", "time_limit"),
        end_reason=end,
        api_calls=len(assistant),
        tool_stats=stats,
        tool_error_counts={name: stat.failure for name, stat in stats.items()},
        reasoning_stats=ReasoningStats(len(assistant), reasoned, len(assistant) - reasoned),
        usage=Usage(
            1500 * len(assistant) + chance.randint(0, 900), 60 * len(assistant) + 9, 30, 0, round(seconds / 9000, 6)
        ),
    )


def _call(number: int, n: int, name: str, reasoned: bool) -> Turn:
    arguments = msgspec.json.encode({"command": f'grep -rn "needle-{number}" . | head', "timeout": 30}).decode()
    if number == 3:
        arguments = msgspec.json.encode({"command": HOSTILE, "__proto__": HOSTILE}).decode()
    if number % 13 == 12 and n == 0:
        arguments = '{"command": "ls'
    thought = f"Step {n}: I look first, then I change one thing at a time. " * 3
    return Turn("gpt", "", thought if reasoned else "", [ToolCall(f"call_{n}", name, arguments)])


def _result(number: int, n: int, failed: bool) -> str:
    if number == 3:
        return HOSTILE
    if failed:
        return "Error: the file is not there" if n % 2 else '{"error": "permission denied"}'
    lines = "".join(f"-rw-r--r-- 1 user user {k * 173} notes_{k}.txt\n" for k in range(3 + n * 5))
    return msgspec.json.encode({"output": lines, "exit_code": 0}).decode()


def _answer(number: int) -> str:
    if number == 3:
        return HOSTILE
    secret = "\n\nThe deep-secret-word is here." if number % 50 == 7 else ""
    return "I found the cause and mended it. " * (6 + number % 9) + secret


def _failed(run: Run, number: int, chance: random.Random) -> Any:
    when = START + timedelta(seconds=number * 40)
    prompt = run.prompts[(number * 3) % len(run.prompts)]
    return failure(prompt, chance.choice(KINDS), 0, timestamp=when.isoformat())
