"""What prompts and runs cost, and where that ends them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import Job, Recorder, text_of
from scripted_server.fixture import ScriptedServer
from trajectile.errors import UserError
from trajectile.model.settings import ModelSettings
from trajectile.model.usage import read_usage
from trajectile.planning.estimate import estimate
from trajectile.planning.preparation import prepare_run
from trajectile.run_folder.spending import Purse, open_purse
from trajectile.run_folder.times import read_times

PRICES = {"price_prompt_per_million": 1.0, "price_completion_per_million": 100.0}
CALL = {"name": "terminal", "arguments": {"command": "true"}}
REPLIES = [
    {"tool_calls": [CALL], "reasoning": "hm", "usage": {"prompt_tokens": 0, "completion_tokens": 1000}},
    {"text": "done", "usage": {"prompt_tokens": 0, "completion_tokens": 1000}},
]
A_CALL = 0.1  # 1,000 tokens out


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


def make(root: Path, server: ScriptedServer, count: int = 6, **config: Any) -> Job:
    job = Job(root, server, [f"task {n}" for n in range(count)], **{**PRICES, "concurrency": 1, **config})
    job.script({"regex": "task", "replies": REPLIES})
    return job


def test_a_price_counts_where_the_answer_names_no_cost() -> None:
    settings = ModelSettings("http://h", "", "m", price_prompt=2.0, price_completion=10.0)
    tokens = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000}
    assert read_usage(tokens, settings).cost == 3.0
    assert read_usage({**tokens, "cost": 0.25}, settings).cost == 0.25
    assert read_usage({**tokens, "cost": 0}, settings).cost == 0.0
    assert read_usage(tokens).cost == 0.0


def test_a_prompt_that_costs_too_much_is_a_row_with_what_it_has(tmp_path: Path, server: ScriptedServer) -> None:
    job = make(tmp_path, server, 1, max_cost_per_prompt=A_CALL)
    assert job.here() == 0
    [row] = job.rows()
    assert (row.end_reason, row.partial, row.completed, row.api_calls) == ("cost_limit", True, False, 1)
    assert row.usage.cost == pytest.approx(A_CALL)
    assert [turn.from_ for turn in row.conversations] == ["human", "gpt", "tool"]


def test_a_run_that_costs_too_much_stops_and_keeps_everything(tmp_path: Path, server: ScriptedServer) -> None:
    job = make(tmp_path, server, batch_size=4, max_cost=5 * A_CALL)
    assert job.here(0) == 1
    assert [text_of(row) for row in job.journal(0)] == ["task 0", "task 1", "task 2"], "the third went over"
    assert {row.end_reason for row in job.journal(0)} == {"finished"} and job.failures(0) == []
    assert "the run has cost 0.6, max_cost is 0.5" in job.folder.stop.read_text()
    job.script({"regex": "task", "replies": REPLIES})
    assert job.here(1) == 1 and job.asked() == {}, "the next shard begins nothing"

    with pytest.raises(UserError, match=r"max_cost: the run has cost 0\.6, max_cost is 0\.5"):
        job.plan()
    job.plan(max_cost=50 * A_CALL)
    job.script({"regex": "task", "replies": REPLIES})
    assert [job.here(0), job.here(1)] == [0, 0] and set(job.asked()) == {"task 3", "task 4", "task 5"}
    assert len(job.rows(0)) + len(job.rows(1)) == 6


def test_failed_attempts_count_and_survive_in_the_shards_state(tmp_path: Path, server: ScriptedServer) -> None:
    job = make(tmp_path, server, 2)
    job.script({"regex": "task", "replies": REPLIES, "faults": [{"kind": "answer", "status": 500, "on_calls": [2]}]})
    assert job.here() == 0 and job.rows() == [] and len(job.failures()) == 2
    assert read_times(job.folder.times(0)).usage.cost == pytest.approx(2 * A_CALL)
    assert open_purse(job.folder) == pytest.approx(2 * A_CALL)


def test_shards_know_of_each_other(tmp_path: Path, server: ScriptedServer) -> None:
    job = make(tmp_path, server, 1)
    one, two = Purse(job.folder, 1, 1.0), Purse(job.folder, 2, 1.0)
    one.share(0.7)
    two.share(0.1)
    assert two.problem(0.2) == "" and "the run has cost 1.1" in two.problem(0.4)
    assert one.problem(0.7) == "", "it has not looked since"
    one.share(0.7)
    assert one.problem(0.9) == "" or "the run has cost 1" in one.problem(0.9)
    assert Purse(job.folder, 3, None).problem(1e9) == ""


def test_the_first_request_can_be_read_before_anything_is_spent(tmp_path: Path) -> None:
    with Recorder() as server:
        config = {"ephemeral_system_prompt": "BE BRIEF", "reasoning_effort": "low", "distribution": "development"}
        job = Job(tmp_path, server, ["task 0", "task 1"], **config, missing_toolsets="drop")  # type: ignore[arg-type]
        written = json.loads(job.folder.first_request.read_bytes())
        assert server.requests == []
        assert written["url"] == f"{server.base_url}/chat/completions" and written["prompt_index"] == 0
        assert [message["content"] for message in written["body"]["messages"]] == ["BE BRIEF", "task 0"]
        assert job.here() == 0
        bodies = [body for _, body in server.requests]
        assert written["body"] in bodies and len(bodies) == 2

        job.set_dataset(["task 0", "task 1", "task 9"])
        job.plan()
        assert json.loads(job.folder.first_request.read_bytes())["body"]["messages"][-1]["content"] == "task 9"
        job.release()


def test_the_estimate_goes_by_prices_and_then_by_what_was_paid(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make(tmp_path, server, 4, batch_size=2)
    monkeypatch.chdir(tmp_path)
    new = estimate(prepare_run(job.config))
    assert new.startswith("4 prompts to run in 2 shards, 0 done. Prompt and tools are about ") and "cost roughly" in new
    assert job.here(0) == 0
    half = estimate(prepare_run(job.config))
    assert half.startswith("2 prompts to run in 1 shard, 2 done. Going by 2 finished rows: about 0 tokens in and 4,000")
    assert half.endswith("cost about 0.4")
