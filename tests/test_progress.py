"""How a run stands: read from its folder step by step, and said."""

import io
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers import Job, wait_until
from rich.console import Console
from scripted_server.fixture import ScriptedServer
from trajectile.progress.follow import Lines as NewLines
from trajectile.progress.reader import RunReader
from trajectile.progress.standing import Standing
from trajectile.progress.watch import Lines, LiveTable, beside, keep_showing
from trajectile.progress.words import duration, one_line, rows, short
from trajectile.rows import Usage
from trajectile.run_folder.journal import Failure, encode
from trajectile.run_folder.paths import RunFolder

TOOL = {"name": "terminal", "arguments": {"command": "true"}}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def job(tmp_path: Path, server: ScriptedServer) -> Iterator[Job]:
    made = Job(tmp_path, server, [f"task {n}" for n in range(6)], batch_size=3)
    yield made
    made.release()


def test_a_run_is_read_from_its_folder_as_it_goes_on(job: Job) -> None:
    reader = RunReader(job.folder)
    now = reader.read()
    assert (now.prompts, now.done, now.owed, now.failed, now.rate) == (6, 0, 6, 0, 0.0)
    assert now.owner == f"process {os.getpid()} on {os.uname().nodename}"

    unreasoned = {"match": "task 1", "replies": [{"text": "done", "usage": {"prompt_tokens": 7}}]}
    job.script({"match": "task 0", "faults": [{"kind": "answer", "status": 500}]}, unreasoned)
    assert job.here(0) == 0
    now = reader.read()
    assert (now.done, now.owed, now.failed, now.discarded, now.running) == (2, 4, 1, 1, 0)
    assert now.last_error.startswith("prompt 0: server_error: HTTP 500") and now.usage.prompt_tokens > 7
    assert now.rate > 0 and now.seconds_left

    job.script()
    job.plan()
    assert [job.here(shard.number) for shard in job.planned.shards] == [0, 0]
    fresh = RunReader(job.folder).read()
    assert (fresh.done, fresh.owed, fresh.failed) == (6, 0, 0), "what succeeded later has not failed"
    now = reader.read()
    assert (now.done, now.failed, now.last_error) == (6, 0, "")

    job.folder.batch(1).unlink()
    assert reader.read().done == RunReader(job.folder).read().done
    for number in job.folder.numbers("journal"):
        job.folder.journal(number).unlink()
    assert reader.read().done == RunReader(job.folder).read().done == 3
    job.release()
    assert reader.read().owner == ""


def test_failures_of_prompts_that_left_the_dataset_are_not_counted(job: Job) -> None:
    job.script({"regex": "task [01]", "faults": [{"kind": "answer", "status": 500}]})
    assert [job.here(0), job.here(1)] == [0, 0]
    reader = RunReader(job.folder)
    assert reader.read().failed == 2
    job.set_dataset(["task 0", "better 1", *(f"task {n}" for n in range(2, 6))])
    job.plan(max_attempts=1)
    for now in (reader.read(), RunReader(job.folder).read()):
        assert (now.failed, now.given_up, now.done) == (1, 1, 4) and now.last_error.startswith("prompt 0: ")


def test_rows_that_left_the_dataset_are_not_counted(job: Job) -> None:
    job.script()
    assert [job.here(0), job.here(1)] == [0, 0]
    job.set_dataset(["task 5", "new"])
    job.plan()
    now = RunReader(job.folder).read()
    assert (now.prompts, now.done, now.owed) == (2, 1, 1)


def test_running_and_waiting_prompts_are_told_by_the_living_shard(job: Job) -> None:
    busy = {"match": "task 0", "faults": [{"kind": "answer", "status": 429, "headers": {"Retry-After": "30"}}]}
    job.script(busy, {"regex": "task", "latency": 30})
    process, reader = job.start(0), RunReader(job.folder)
    try:
        wait_until(lambda: reader.read().waiting > 0, "a prompt that waits")
        assert reader.read().running == 3
    finally:
        process.kill()
        process.wait()
    assert (reader.read().running, reader.read().waiting) == (0, 0), "a dead shard runs nothing"


def test_only_new_whole_lines_are_read_and_a_replaced_file_from_its_start(tmp_path: Path) -> None:
    path, lines = tmp_path / "a", NewLines()
    assert lines.read(path) == []
    path.write_bytes(b"one\ntw")
    assert lines.read(path) == [b"one"]
    with path.open("ab") as file:
        file.write("o\u2028\nthree".encode())
    assert lines.read(path) == ["two\u2028".encode()] and lines.read(path) == []
    (tmp_path / "b").write_bytes(b"anew\n")
    (tmp_path / "b").replace(path)
    assert lines.read(path) == [b"anew"]


def test_a_look_at_ten_thousand_shards_is_cheap(job: Job) -> None:
    job.script()
    assert job.here(0) == 0
    row = job.folder.journal(0).read_bytes().splitlines()[0]
    for number in range(10_000, 20_000):
        job.folder.journal(number).write_bytes(row + b"\n")
        job.folder.times(number).write_bytes(job.folder.times(0).read_bytes())
    reader = RunReader(job.folder)
    reader.read()
    began = time.process_time()
    reader.read()
    assert time.process_time() - began < 1.0


def standing(**changes: Any) -> Standing:
    usage = Usage(1_234_567, 45_678, cost=1.5)
    plain = Standing(1000, 400, 32, 4, 2, 0, 1, usage, 30.0, "prompt 3: timeout: no answer", "process 1 on h")
    return Standing(**{**{name: getattr(plain, name) for name in Standing.__dataclass_fields__}, **changes})


def test_a_standing_in_words() -> None:
    assert one_line(standing()) == (
        "400 of 1,000 done, 28 running, 4 waiting for the server, 2 failed, 1 discarded; "
        "1.23M tokens in, 45.7k out, cost 1.5; 30.0 prompts/min, 20 min left"
    )
    assert one_line(standing(rate=0.0, usage=Usage())).endswith("; 0 tokens in, 0 out; no rate yet")
    assert one_line(standing(owner="")).endswith("30.0 prompts/min")
    assert dict(rows(standing()))["done"] == "400 (40.0%)" and dict(rows(standing(owner="")))["made by"] == "nobody now"
    assert (standing().owed, standing(given_up=2).owed) == (600, 598) and "given up" not in dict(rows(standing()))
    assert dict(rows(standing(given_up=2)))["given up"] == "2 after max_attempts; --retry_failed tries them once more"
    assert [duration(n) for n in (0.2, 59, 61, 7320, 90_000)] == ["0 s", "59 s", "1 min 1 s", "2 h 2 min", "1 d 1 h"]
    assert [short(n) for n in (0, 999, 1000, 25_400, 999_499, 999_500, 3_000_000_000)] == [
        *("0", "999", "1k", "25.4k", "999k", "1M", "3G")
    ]


def test_an_error_is_told_once_until_another_kind_comes(capsys: pytest.CaptureFixture[str]) -> None:
    show = Lines()
    for number, kind in enumerate(["timeout", "timeout", "timeout", "server_error"]):
        show.show(standing(done=number, last_error=f"prompt {number}: {kind}: it failed"))
    said = capsys.readouterr().err
    assert said.count("last error") == 2 and said.count("last error: prompt 0: timeout") == 1
    assert said.count("trajectile: ") == 6


def test_a_watcher_shows_until_nobody_makes_the_run(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.script()
    assert job.here(0) == 0
    capsys.readouterr()
    watcher = threading.Thread(
        target=keep_showing, args=(RunReader(job.folder), Lines(0.05), threading.Event()), kwargs={"until_idle": True}
    )
    watcher.start()
    wait_until(lambda: RunReader(job.folder).read().owner, "the owner")
    assert watcher.is_alive()
    job.release()
    watcher.join(10)
    assert not watcher.is_alive() and "3 of 6 done" in capsys.readouterr().err


def test_progress_beside_a_run_ends_with_how_it_ended(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.script()
    capsys.readouterr()
    with beside(job.folder, Lines(60)):
        assert job.here(0) == 0
    assert capsys.readouterr().err.count("3 of 6 done") == 1
    with beside(job.folder, Lines(60), lambda: False):
        pass
    assert capsys.readouterr().err == "", "a start that was refused has no progress"


def test_a_terminal_shows_a_table(job: Job) -> None:
    screen = io.StringIO()
    table = LiveTable("my_run", Console(file=screen, force_terminal=True, width=100))
    with table.live:
        table.show(standing())
    assert "my_run" in screen.getvalue() and "waiting for the server" in screen.getvalue()
    assert "400 (40.0%)" in screen.getvalue() and "prompt 3: timeout: no answer" in screen.getvalue()


def test_failures_of_other_files_and_damage_are_passed_over(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.ledger(0).parent.mkdir()
    failure = Failure(4, "ab" * 32, 0, 0, 1, "timeout", "no\u2028answer", "2026-01-01T00:00:00+00:00")
    folder.ledger(0).write_bytes(b"\x00\n" + encode(failure) + msgspec.json.encode(failure))
    (folder.ledger(0).parent / "notes.jsonl").write_bytes(b"x\n")
    now = RunReader(folder).read()
    assert (now.prompts, now.failed, now.last_error) == (0, 1, "prompt 4: timeout: no\u2028answer")
