"""The log of a shard: one line an event, previews cut."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import Job
from scripted_server.fixture import ScriptedServer
from trajectile.agent.events import preview, preview_chars

TOOL = {"name": "terminal", "arguments": {"command": "echo seen; echo"}}
LONG = "Count\nthe files " + "x" * 200


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


def lines(root: Path, server: ScriptedServer, **config: Any) -> list[str]:
    """Run a shard of two prompts as the real program; return its log without times."""
    job = Job(root, server, [LONG, "b"], **config)
    job.script(
        {"match": LONG, "replies": [{"tool_calls": [TOOL], "reasoning": "hm"}, {"text": "done"}]},
        {"match": "b", "faults": [{"kind": "answer", "status": 429, "times": 1, "headers": {"Retry-After": "0.1"}}]},
    )
    assert job.run() == 0
    job.release()
    return [line.split(" ", 2)[2] for line in job.said().splitlines()]


def test_each_event_is_a_line_and_a_prompts_start_is_cut(tmp_path: Path, server: ScriptedServer) -> None:
    said = lines(tmp_path, server, log_prefix_chars=20, local_isolation="none")
    assert said[0].startswith("INFO shard 0: 2 prompts to run, up to 8 at once. Commands run WITHOUT isolation")
    assert said[1] == "INFO prompt 0: started: Count the files xxxx…" and said[2] == "INFO prompt 1: started: b"
    assert "INFO prompt 1: waiting 0.1 s: rate_limit" in said
    assert "INFO prompt 0: finished after 2 calls" in said
    assert said[-2:] == ["INFO shard 0: 2 finished, 0 failed", "INFO batch 0: 2 rows"]
    assert not any(line.startswith("DEBUG") for line in said)


def test_verbose_logs_model_calls_and_tool_calls(tmp_path: Path, server: ScriptedServer) -> None:
    said = lines(tmp_path, server, verbose=True)
    assert any(line.startswith("INFO prompt 0: started: Count the files " + "x" * 84 + "…") for line in said)
    assert any(line.startswith("DEBUG prompt 0: model call 1: ") and " tokens in, " in line for line in said)
    assert 'DEBUG prompt 0: tool call terminal: {"command":"echo seen; echo"}' in said
    assert any(line.startswith("DEBUG prompt 0: tool terminal answered: ") and "seen" in line for line in said)
    assert any("model call 2" in line and line.endswith(", stop: done") for line in said)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("short", "short"), ("0123456789", "0123456789"), ("0123456789a", "0123456789…"), ("a\n\tb", "a b"), ("", "")],
)
def test_a_preview_is_one_line_of_at_most_so_many_characters(text: str, wanted: str) -> None:
    token = preview_chars.set(10)
    assert preview(text) == wanted
    preview_chars.reset(token)
