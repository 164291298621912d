"""The engine of a shard, in this process, against the scripted server: what each kind of trouble leaves behind."""

import asyncio
import logging
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers import Job, Recorder, id_of, largest_file, text_of, without_times
from scripted_server.fixture import ScriptedServer
from trajectile.agent.episode import EpisodeSettings
from trajectile.configuration.settings import load_settings
from trajectile.model.client import ModelClient
from trajectile.model.settings import ModelSettings
from trajectile.rows import PromptRow, ToolStat
from trajectile.run_folder.journal import encode
from trajectile.run_folder.lease import Lease, Owner
from trajectile.run_folder.paths import RunFolder
from trajectile.run_folder.times import Clock
from trajectile.sandbox.base import Sandbox
from trajectile.shard.engine import ShardRun
from trajectile.tools.distributions import Distribution

PROMPTS = [f"task {n}" for n in range(6)]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def make(server: ScriptedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO, "trajectile")

    def job(*rules: dict[str, Any], prompts: list[Any] | None = None, script: Any = None, **config: Any) -> Job:
        made = Job(tmp_path, server, PROMPTS if prompts is None else prompts, **config)
        made.script(*rules, **(script or {}))
        return made

    return job


def fault(match: str, status: int = 500, **more: Any) -> dict[str, Any]:
    return {"regex": match, "faults": [{"kind": "answer", "status": status, **more}]}


def tool_call(match: str, command: str, **more: Any) -> dict[str, Any]:
    call = {"name": "terminal", "arguments": {"command": command}}
    return {"match": match, "replies": [{"tool_calls": [call], "reasoning": "hm"}, {"text": "done"}], **more}


def test_all_prompts_become_rows_in_the_shards_order(make: Any) -> None:
    job = make({"match": "task 0", "latency": 0.3}, prompts=[*PROMPTS, "task 1"])
    assert job.here() == 0
    assert [text_of(row) for row in job.rows()] == [*PROMPTS, "task 1"]
    assert [text_of(row) for row in job.journal()] != [*PROMPTS, "task 1"], "the slow one finished last"
    assert len({id_of(row) for row in job.rows()}) == 7 and job.failures() == [] and job.sandboxes() == []
    assert not job.folder.shard_lease(0).exists() and not job.folder.stop.exists()


def test_a_second_start_asks_nothing_and_changes_no_row(make: Any) -> None:
    job = make()
    assert job.here() == 0
    before = job.folder.batch(0).read_bytes()
    job.script()
    assert job.here() == 0 and job.asked() == {} and job.folder.batch(0).read_bytes() == before


def test_no_more_prompts_are_in_flight_than_asked_for(make: Any) -> None:
    job = make(script={"latency": 0.05}, concurrency=2)
    assert job.here() == 0 and job.server.counters()["max_in_flight"] == 2


def test_rows_do_not_depend_on_the_shard_layout(make: Any, tmp_path: Path, server: ScriptedServer) -> None:
    chances = {"distribution": "development", "missing_toolsets": "drop", "seed": 3}
    one = make(**chances)
    assert one.here() == 0
    (tmp_path / "other").mkdir()
    many = Job(tmp_path / "other", server, PROMPTS, batch_size=4, concurrency=1, **chances)
    assert [many.here(0), many.here(1)] == [0, 0]
    cut = [without_times(row) for row in [*many.rows(0), *many.rows(1)]]
    assert cut == [without_times(row) for row in one.rows()]
    assert len({tuple(row["toolsets_used"]) for row in cut}) > 1


def test_some_failures_are_ledger_lines_and_the_batch_holds_the_rest(make: Any) -> None:
    job = make(fault("task [14]"))
    assert job.here() == 0
    assert [text_of(row) for row in job.rows()] == ["task 0", "task 2", "task 3", "task 5"]
    failures = sorted(job.failures(), key=lambda failure: failure.prompt_index)
    assert [(f.prompt_index, f.kind, f.attempt, f.batch_num) for f in failures] == [
        (1, "server_error", 1, 0),
        (4, "server_error", 1, 0),
    ]
    assert "HTTP 500" in failures[0].message
    made = job.plan()
    assert [(shard.number, len(shard.rows)) for shard in made.shards] == [(1, 2)]


def test_attempts_are_counted_from_shard_to_shard_until_the_last(make: Any) -> None:
    job = make(fault("task 1"), max_attempts=3)
    for number in range(3):
        assert [shard.number for shard in job.planned.shards] == [number]
        assert job.here(number) == 0
        assert [failure.attempt for failure in job.failures(number)] == [number + 1]
        job.plan()
    assert job.planned.shards == [] and len(job.planned.given_up) == 1


def test_an_outage_stops_the_shard_and_leaves_it_owed(make: Any) -> None:
    job = make(fault("."), max_consecutive_failures=3, concurrency=1)
    assert job.here() == 1
    assert [failure.attempt for failure in job.failures()] == [1, 1, 1]
    assert not job.folder.batch(0).exists() and not job.folder.stop.exists() and job.journal() == []
    assert sum(job.asked().values()) == 3
    made = job.plan()
    assert [(shard.number, len(shard.rows)) for shard in made.shards] == [(0, 6)]
    assert "3 of them failed before" in made.shards[0].reason


def test_attempts_are_counted_through_restarts_of_a_shard(make: Any) -> None:
    job = make(fault("."), max_consecutive_failures=3, concurrency=1)
    assert [job.here(), job.here()] == [1, 1]
    job.plan()
    assert job.here() == 1
    assert [(failure.prompt_index, failure.attempt) for failure in job.failures()] == [
        *((n, 1) for n in range(6)),
        *((n, 2) for n in range(3)),
    ]


def test_an_outage_in_one_shard_does_not_end_the_others(make: Any) -> None:
    job = make(fault("task [012]"), batch_size=3, max_consecutive_failures=2, concurrency=1)
    assert job.here(0) == 1 and job.here(1) == 0
    assert [text_of(row) for row in job.rows(1)] == ["task 3", "task 4", "task 5"]


def test_what_is_in_flight_at_an_outage_comes_to_its_end(make: Any) -> None:
    slow = {"match": "task 0", "latency": 0.4}
    job = make(slow, fault("task [1-5]"), max_consecutive_failures=2, concurrency=2)
    assert job.here() == 1 and [text_of(row) for row in job.journal()] == ["task 0"] and len(job.failures()) == 2


def test_a_success_between_failures_is_not_in_a_row(make: Any) -> None:
    job = make(fault("task [0135]"), max_consecutive_failures=3, concurrency=1)
    assert job.here() == 0 and len(job.failures()) == 4


def test_a_shard_whose_prompts_were_all_attempted_is_done_however_many_failed(make: Any) -> None:
    job = make(fault("."), max_consecutive_failures=6)
    assert job.here() == 0
    assert job.rows() == [] and len(job.failures()) == 6 and len(job.plan().owed) == 6


def test_prompts_that_always_fail_do_not_keep_the_others_from_running(make: Any) -> None:
    job = make(fault("task [012]"), max_consecutive_failures=2, concurrency=1)
    assert job.here() == 1 and job.journal() == []
    job.plan()
    assert job.here() == 0, "those that failed come last, and by then all have been attempted"
    assert [text_of(row) for row in job.rows()] == ["task 3", "task 4", "task 5"]


FATAL = {
    "key": (401, "Incorrect API key", "refuses the key: set TRAJECTILE_API_KEY"),
    "right": (403, "Key limit exceeded", "does not let this key use scripted"),
    "model": (404, "The model does not exist", "has no model scripted"),
    "credit": (402, "Insufficient credits", "out of credit: add credit, then run again"),
}


@pytest.mark.parametrize("name", FATAL)
def test_what_only_the_user_can_mend_stops_this_start_with_one_sentence(make: Any, caplog: Any, name: str) -> None:
    status, message, sentence = FATAL[name]
    job = make(fault(".", status, body={"error": {"message": message}}), batch_size=3, concurrency=1)
    assert job.here(0) == 1
    assert job.failures(0) == [] and job.journal(0) == [] and not job.folder.batch(0).exists()
    assert sum(job.asked().values()) == 1
    assert sentence in job.folder.stop.read_text() and sentence not in caplog.text, "the start says it, once"

    job.script()
    assert job.here(1) == 1 and job.asked() == {}, "the next shard of this start ends before any call"
    assert caplog.text.count("the last lines of the run say why") == 2 and sentence not in caplog.text
    assert caplog.text.count("Traceback") == 0 and job.sandboxes() == []

    job.plan()
    assert not job.folder.stop.exists()
    assert job.here(0) == 0 and job.here(1) == 0, "the next start begins anew"


def test_a_fatal_stop_keeps_what_was_finished(make: Any) -> None:
    job = make(fault("task 3", 402), concurrency=1)
    assert job.here() == 1
    assert [text_of(row) for row in job.journal()] == ["task 0", "task 1", "task 2"]
    job.script()
    job.plan()
    assert job.here() == 0
    assert set(job.asked()) == {"task 3", "task 4", "task 5"} and len(job.rows()) == 6


def test_after_a_stop_a_shard_with_nothing_to_run_still_makes_its_batch(make: Any) -> None:
    job = make(batch_size=3)
    assert job.here(0) == 0
    job.folder.batch(0).unlink()
    job.plan()
    job.script(fault(".", 402))
    assert job.here(1) == 1 and job.folder.stop.exists()
    assert job.here(0) == 0 and len(job.rows(0)) == 3


def test_context_overflow_ends_its_prompt_and_the_shard_goes_on(make: Any) -> None:
    long = {"error": {"message": "maximum context length is 8 tokens", "code": "context_length_exceeded"}}
    later = {**tool_call("task 2", "echo"), "faults": [{"kind": "answer", "status": 413, "body": "", "on_calls": [2]}]}
    job = make(fault("task 1", 400, body=long), later)
    assert job.here() == 0 and job.failures() == []
    ends = [(row.end_reason, row.partial, row.completed, row.api_calls) for row in job.rows()]
    assert ends[1:3] == [("context_overflow", True, False, 0), ("context_overflow", True, False, 1)]
    assert {end[0] for end in ends[3:]} == {"finished"}
    assert [turn.from_ for turn in job.rows()[2].conversations] == ["human", "gpt", "tool"]


def test_calls_that_cannot_be_executed_are_rows_and_no_success(make: Any) -> None:
    bad = [
        {"name": "ecco", "arguments": {}},
        {"name": "terminal", "arguments": "{'command': 'ls'}"},
        {"name": "terminal", "arguments": {"command": "ls"}, "id": ""},
        {"name": "", "arguments": {}},
    ]
    twice = [{"name": "terminal", "arguments": {"command": "ls"}, "id": "a"}] * 2
    replies = [{"tool_calls": bad, "reasoning": "hm"}, {"tool_calls": twice}, {"text": "I give up."}]
    job = make({"match": "task 0", "replies": replies})
    assert job.here() == 0
    row = job.rows()[0]
    assert row.completed and row.tool_stats["terminal"] == ToolStat(4, 0, 4) and "ecco" not in row.tool_stats
    assert row.tool_error_counts["terminal"] == 4
    results = [turn for turn in row.conversations if turn.from_ == "tool"]
    ids = [call.id for turn in row.conversations for call in turn.tool_calls]
    assert [turn.tool_call_id for turn in results] == ids and len(set(ids)) == 6
    assert all(turn.value.startswith("Error: ") for turn in results)
    assert row.conversations[1].tool_calls[1].arguments == "{'command': 'ls'}", "the row keeps what the model wrote"


@pytest.mark.parametrize("header", ["1", "{date+2}"])
def test_a_rate_limit_is_waited_out_as_told_and_said(make: Any, caplog: Any, header: str) -> None:
    job = make(fault(".", 429, times=1, headers={"Retry-After": header}), prompts=["a", "b"])
    began = time.monotonic()
    assert job.here() == 0
    assert time.monotonic() - began > 0.9
    assert len(job.rows()) == 2 and job.failures() == []
    assert "waiting" in caplog.text and "rate_limit" in caplog.text


def test_a_rate_limit_nine_times_in_ten_drops_nothing(make: Any, server: ScriptedServer) -> None:
    busy = fault(".", 429, probability=0.9, headers={"Retry-After": "0.02"})
    job = make(busy, prompts=[f"p{n}" for n in range(8)], concurrency=8)
    assert job.here() == 0 and len(job.rows()) == 8 and job.failures() == []
    assert server.counters()["faults"]["answer"] > 16


def test_a_rate_limit_without_end_is_a_failure_at_the_deadline_only(make: Any) -> None:
    job = make(fault("task 0", 429, headers={"Retry-After": "0.1"}), prompt_timeout=1)
    assert job.here() == 0 and len(job.rows()) == 5
    [failure] = job.failures()
    assert failure.kind == "rate_limit" and job.asked()["task 0"] > 2


def test_time_that_runs_out_is_a_row_after_an_answer_and_a_failure_before(make: Any) -> None:
    silent = {"kind": "silent", "seconds": 20}
    rules = [
        {"match": "task 0", "faults": [silent]},
        {**tool_call("task 1", "echo"), "faults": [{**silent, "on_calls": [2]}]},
        tool_call("task 2", "echo started; sleep 60"),
    ]
    job = make(*rules, prompt_timeout=1.5)
    assert job.here() == 0
    [failure] = job.failures()
    assert (failure.prompt_index, failure.kind) == (0, "deadline")
    ends = {text_of(row): row.end_reason for row in job.rows()}
    assert ends == {"task 1": "time_limit", "task 2": "time_limit"} | dict.fromkeys(PROMPTS[3:], "finished")
    assert job.sandboxes() == []


def test_a_sandbox_that_dies_is_a_failure_and_no_more_calls_are_paid(make: Any) -> None:
    job = make(tool_call("task 0", "kill -9 -1; sleep 5"), local_isolation="bwrap")
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    assert job.here() == 0 and len(job.rows()) == 5
    [failure] = job.failures()
    assert (failure.prompt_index, failure.kind) == (0, "sandbox_died") and job.asked()["task 0"] == 1


def test_an_error_of_ours_ends_its_prompt_and_not_the_shard(make: Any, caplog: Any) -> None:
    job = make()
    given = job.prompts()
    given[1].turns[0].from_ = "nobody"
    job.folder.shard(0).write_bytes(b"".join(encode(row) for row in given))
    assert job.here() == 0 and len(job.rows()) == 5
    [failure] = job.failures()
    assert (failure.prompt_index, failure.kind, failure.message) == (1, "internal_error", "KeyError: 'nobody'")
    assert "Traceback" in caplog.text, "the log shows where"


def test_unreadable_characters_in_an_error_do_not_end_the_shard(make: Any) -> None:
    page = "<p>" + "\\udcff" * 3
    job = make(fault("task 0", body='{"error": {"message": "' + page + '"}}'))
    assert job.here() == 0 and len(job.rows()) == 5 and "\ufffd" in job.failures()[0].message


def test_half_a_character_in_an_error_of_ours_does_not_end_the_shard(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # captured, it could not be sent from one test process to another
    monkeypatch.setattr(logging.getLogger("trajectile.shard.engine"), "propagate", False)
    job = make()

    def broken(_row: PromptRow) -> Sandbox:
        raise RuntimeError("half \ud83d of it")

    async def run() -> None:
        lease = Lease(job.folder.shard_lease(0))
        lease.acquire()
        async with ModelClient(ModelSettings(job.server.base_url, "", "scripted")) as model:
            offer = Distribution("mine", {"terminal": 100.0})
            shared = EpisodeSettings(load_settings(job.config), 0, "digest", offer, [], model, broken)
            clock = Clock(job.folder.times(0))
            await ShardRun(job.folder, 0, shared, lease, clock, Counter()).run(job.prompts()[:2])

    asyncio.run(run())
    assert [failure.message for failure in job.failures()] == ["RuntimeError: half \ufffd of it"] * 2


def test_withdrawn_rows_do_not_run(make: Any) -> None:
    job = make(fault("task 1", 402), concurrency=1)
    assert job.here() == 1 and len(job.journal()) == 1
    job.script()
    job.set_dataset(["task 0", "task 1", "task 5", "new"])
    made = job.plan()
    assert [(shard.number, len(shard.rows), len(shard.withdrawn)) for shard in made.shards] == [(0, 2, 3), (1, 1, 0)]
    assert job.here(0) == 0
    assert set(job.asked()) == {"task 1", "task 5"}
    assert [text_of(row) for row in job.rows(0)] == ["task 0", "task 1", "task 5"]


@pytest.mark.parametrize("place", ["journal", "batch"])
def test_a_torn_line_costs_its_row_alone(make: Any, place: str) -> None:
    job = make()
    assert job.here() == 0
    whole = job.folder.batch(0).read_bytes()
    lines = whole.splitlines(keepends=True)
    job.folder.journal(0).unlink()
    job.folder.batch(0).unlink()
    getattr(job.folder, place)(0).write_bytes(b"".join(lines[:-1]) + lines[-1][:-40])
    job.script()
    [shard] = job.plan().shards
    assert len(shard.rows) == 1
    assert job.here(shard.number) == 0 and job.asked() == {"task 5": 1}
    rows = [row for number in job.folder.numbers("") for row in job.rows(number)] if place == "journal" else []
    assert [text_of(row) for row in rows] == (PROMPTS if place == "journal" else [])


def test_line_breaks_of_unicode_survive_a_resume(make: Any) -> None:
    odd = "one\u2028two\u2029three\u0085four\x0b\x0c\r\nfive"
    job = make({"match": odd, "replies": [{"text": odd, "reasoning": odd}]}, prompts=[odd, "plain"])
    assert job.here() == 0 and job.folder.batch(0).read_bytes().count(b"\n") == 2
    job.script()
    assert job.plan().shards == [], "the plan knows the row again"
    job.folder.batch(0).unlink()
    job.plan()
    assert job.here() == 0 and job.asked() == {}
    assert text_of(job.rows()[0]) == odd and job.rows()[0].conversations[1].value == odd


def test_a_lease_that_is_taken_over_stops_the_holder_before_its_next_line(make: Any, caplog: Any) -> None:
    taken = msgspec.json.encode(Owner("another.host", 1, 1.0, "", "another")).decode()
    job = make(local_isolation="none", concurrency=1)
    lease = job.folder.shard_lease(0).absolute()
    job.script({"match": "task 1", "replies": [{"tool_calls": [take_over(taken, lease)]}, {"text": "done"}]})
    assert job.here() == 1
    assert [text_of(row) for row in job.journal()] == ["task 0"] and not job.folder.batch(0).exists()
    assert lease.read_text() == taken, "the new holder's lease stays"
    assert "went to process 1 on another.host" in caplog.text
    assert set(job.asked()) == {"task 0", "task 1"}


def take_over(owner: str, lease: Path) -> dict[str, Any]:
    return {"name": "terminal", "arguments": {"command": f"printf %s '{owner}' > {lease}"}}


def test_rows_of_a_resumed_run_carry_the_settings_they_were_made_with(make: Any) -> None:
    job = make(batch_size=3)
    assert job.here(0) == 0
    job.plan(settings_change="keep", max_turns=5)
    assert job.here(1) == 0
    digests = {row.metadata.settings_digest for number in (0, 1) for row in job.rows(number)}
    identity = msgspec.json.decode(job.folder.run_json.read_bytes())
    assert len(digests) == 2 and digests == set(identity["history"])


def test_the_key_goes_to_the_server_and_nowhere_else(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAJECTILE_API_KEY", "canary-4f2a")
    with Recorder() as recorder:
        job = make(prompts=["a"], base_url=recorder.base_url)
        assert job.here() == 0
    assert recorder.requests[0][0]["authorization"] == "Bearer canary-4f2a"
    assert not [path for path in job.root.rglob("*") if path.is_file() and b"canary-4f2a" in path.read_bytes()]


def test_the_checkpoint_names_what_is_finished(make: Any) -> None:
    job = make(fault("task 2"))
    assert job.here() == 0
    checkpoint = msgspec.json.decode(job.folder.checkpoint.read_bytes())
    assert (checkpoint["finished"], checkpoint["batches"]) == ([[0, 1], [3, 5]], [0])
    assert RunFolder(job.folder.root).keys(job.folder.batch(0)).exists()


def test_a_disk_that_is_full_at_a_write_loses_no_row_and_says_so(make: Any, caplog: Any) -> None:
    job = make(concurrency=1)
    with largest_file(4000):
        assert job.here() == 1
    kept = [text_of(row) for row in job.journal()]
    assert 0 < len(kept) < 6 and job.folder.journal(0).read_bytes().endswith(b"\n")
    assert "stopped: [Errno 27] File too large" in caplog.text and "Traceback" not in caplog.text
    job.script()
    job.plan()
    assert job.here() == 0 and set(job.asked()) == set(PROMPTS) - set(kept) and len(job.rows()) == 6


def test_a_batch_file_that_lacks_journalled_rows_is_completed_without_a_call(make: Any) -> None:
    job = make()
    assert job.here() == 0
    rows = job.rows()
    job.folder.batch(0).write_bytes(encode(rows[0]))
    job.script()
    [shard] = job.plan().shards
    assert shard.reason.startswith("batch file damaged") and shard.rows == []
    assert job.here() == 0 and job.asked() == {} and job.rows() == rows
