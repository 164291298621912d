"""What settings do, for those whose effect no other test shows: on the request, the plan, the row or the commands."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers import ROOT, Job, Recorder
from scripted_server.fixture import ScriptedServer
from trajectile.configuration.settings import load_settings
from trajectile.shard.walltime import walltime

CALL = {"tool_calls": [{"name": "terminal", "arguments": {"command": "echo {0..999}; sleep 60; echo late"}}]}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


def run(root: Path, server: ScriptedServer, *rules: dict[str, Any], **config: Any) -> Job:
    """Run a shard of one prompt, "a", to its end."""
    job = Job(root, server, ["a"], **config)
    job.script(*rules, steps=5)
    assert job.here() == 0
    job.release()
    return job


def test_model_and_toolsets_are_in_the_request_that_goes_to_the_endpoint(tmp_path: Path) -> None:
    with Recorder() as endpoint:
        run_on = {"base_url": endpoint.base_url, "model": "one/two", "distribution": "terminal_only"}
        job = Job(tmp_path, endpoint, ["a"], **run_on)  # type: ignore[arg-type]
        assert job.here() == 0
        job.release()
        [(_, body)] = endpoint.requests
    assert body["model"] == "one/two"
    assert {tool["function"]["name"] for tool in body["tools"]} >= {"terminal", "process", "read_file", "patch"}
    assert job.rows()[0].toolsets_used == ["terminal", "file"]


@pytest.mark.parametrize(
    ("config", "reason", "calls"),
    [
        ({"max_turns": 2}, "max_turns", 2),
        ({"max_tokens_per_prompt": 1}, "token_limit", 1),
        ({"max_turns": 20}, "finished", 6),
    ],
    ids=str,
)
def test_a_limit_ends_the_prompt(tmp_path: Path, server: ScriptedServer, config: Any, reason: str, calls: int) -> None:
    job = run(tmp_path, server, **config)
    [row] = job.rows()
    assert (row.end_reason, row.api_calls, job.asked()) == (reason, calls, {"a": calls})


def test_a_command_ends_at_its_time_and_its_output_at_its_limit(tmp_path: Path, server: ScriptedServer) -> None:
    script = {"match": "a", "replies": [CALL, {"text": "done"}]}
    [row] = run(tmp_path, server, script, command_timeout=3, output_limit=1000).rows()
    [output] = [turn.value for turn in row.conversations if turn.from_ == "tool"]
    assert "999" in output and "late" not in output and len(output) < 1800, "1,000 bytes of 3,890, in JSON"
    assert row.tool_stats["terminal"].failure == 1


def test_a_model_call_ends_at_its_time_and_is_retried_so_often(tmp_path: Path, server: ScriptedServer) -> None:
    slow = {"match": "a", "latency": 30}
    job = run(tmp_path, server, slow, request_timeout=0.3, max_retries=1)
    [failure] = job.failures()
    assert (failure.kind, job.asked()) == ("timeout", {"a": 2})


def test_no_more_rows_are_planned_than_asked_for(tmp_path: Path, server: ScriptedServer) -> None:
    job = Job(tmp_path, server, list("abcde"), max_samples=2)
    assert len(job.planned.owed) == 2
    assert len(job.plan(max_samples=4).owed) == 4
    job.release()


def test_what_is_not_checked_beforehand_is_found_by_the_shard(tmp_path: Path, server: ScriptedServer) -> None:
    gone = "http://127.0.0.1:9/v1"
    with pytest.raises(Exception, match="No model server answers"):
        Job(tmp_path, server, ["a"], base_url=gone, preflight=True)
    Job(tmp_path, server, ["a"], base_url=gone, preflight=False).release()


def test_no_prompt_is_begun_within_the_margin_of_a_jobs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    end = time.time() + 1000
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(end))
    limits = [walltime(load_settings({"walltime_margin": margin}).walltime_margin) for margin in (100, 200, 900)]
    assert [round(end - limit.last_start) for limit in limits if limit] == [100, 200, 250], "a fourth of it at most"
    monkeypatch.setenv("SLURM_JOB_START_TIME", str(end - 4000))
    late = walltime(900)
    assert late and round(end - late.last_start) == 900, "of the job's time, not of what is left of it"


PASSED_ON = {
    "export_only_completed": "true",
    "export_min_turns": "3",
    "export_max_tokens": "70",
    "export_drop_failed_calls": "true",
    "export_validation_fraction": "0.25",
    "export_deduplicate": "prompts",
    "export_arguments": "string",
    "require_reasoning": "false",
    "superseded_rows": "keep",
    "on_bad_row": "skip",
    "max_attempts": "7",
    "max_failed_fraction": "0.5",
    "max_samples": "2",
    "batch_size": "5",
    "seed": "11",
}


def test_settings_reach_the_steps(tmp_path: Path) -> None:
    """`-n -p` prints the commands; what the steps do with their options is shown by their own tests."""
    (tmp_path / "p.jsonl").write_text('{"prompt": "a"}\n')
    config = [
        "dataset_file=p.jsonl",
        "exports=messages,atif",
        *(f"{name}={value}" for name, value in PASSED_ON.items()),
    ]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "-n", "-p", "--config"]
    done = subprocess.run([*command, *config], cwd=tmp_path, env=os.environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    words = (done.stdout + done.stderr).split()
    given = {(name.removeprefix("--"), value.lower()) for name, value in pairwise(words)}
    assert given >= set(PASSED_ON.items()) | {("exports", "messages"), ("exports", "atif")}
