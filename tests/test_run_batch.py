"""The program that runs a shard, as a process of its own: signals, kills, leases, a full disk."""

import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from helpers import Job, id_of, kill, own_signals, text_of, wait_until
from results_files import trajectory
from run_batch import main
from scripted_server.fixture import ScriptedServer
from trajectile.run_folder.journal import encode
from trajectile.run_folder.lease import Lease


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def make(server: ScriptedServer, tmp_path: Path) -> Any:
    def job(prompts: list[Any], *rules: dict[str, Any], script: Any = None, **config: Any) -> Job:
        made = Job(tmp_path, server, prompts, **config)
        made.script(*rules, **(script or {}))
        return made

    return job


def tasks(count: int) -> list[str]:
    return [f"task {n}" for n in range(count)]


def command(text: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "terminal", "arguments": {"command": text}}], "reasoning": "hm"}


def test_it_says_what_it_does_and_gives_the_key_to_no_command(make: Any, tmp_path: Path) -> None:
    look = {"match": "look", "replies": [command("env; cat /proc/*/environ; sleep 1"), {"text": "done"}]}
    job = make(["look", *tasks(2)], look)
    job.environment |= {"TRAJECTILE_API_KEY": "canary-77", "HARMLESS": "neither-this"}
    shard = job.start()
    wait_until(lambda: job.asked() and list(job.sandboxes()), "the command")
    assert b"canary-77" not in b"".join(command_lines())
    assert shard.wait(60) == 0
    assert [text_of(row) for row in job.rows()] == ["look", "task 0", "task 1"]
    assert "prompt 0: finished after 2 calls" in job.said() and "shard 0: 3 finished, 0 failed" in job.said()
    assert job.said().rstrip().endswith("batch 0: 3 rows")
    [seen] = [turn.value for turn in job.rows()[0].conversations if turn.from_ == "tool"]
    assert "HOME=" in seen and "canary-77" not in seen and "neither-this" not in seen
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"canary-77" in path.read_bytes()]


def command_lines() -> Iterator[bytes]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield (process / "cmdline").read_bytes()
        except OSError:
            continue


def test_what_the_user_can_mend_is_said_and_ends_with_2(make: Any, tmp_path: Path) -> None:
    job = make(tasks(1))
    manifest = str(job.folder.manifest(job.planned.digest))
    cases = {
        "is not in manifest_": ["--run_folder", str(job.folder.root), "--shard", "7", "--manifest", manifest],
        "start the run with snakemake": ["--run_folder", str(tmp_path), "--shard", "0", "--manifest", manifest],
        "--shard": ["--run_folder", str(tmp_path), "--shard", "-1", "--manifest", manifest],
        "--manifest": ["--run_folder", str(tmp_path), "--shard", "0", "--manifest", "nowhere"],
    }
    for said, options in cases.items():
        with own_signals():
            result = CliRunner().invoke(main, options)
        assert result.exit_code == 2 and said in result.output, said
    assert job.asked() == {}


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_stops_in_order_and_nothing_finished_is_asked_again(make: Any, number: int, status: int) -> None:
    stuck = [{"match": f"task {n}", "replies": [command("sleep 60")]} for n in (8, 9)]
    job = make(tasks(12), *stuck, concurrency=2)
    shard = job.start()
    wait_until(lambda: set(job.asked()) >= {"task 8", "task 9"} and len(job.sandboxes()) == 2, "the slow ones")
    time.sleep(0.2)
    shard.send_signal(number)
    assert shard.wait(60) == status
    assert f"stopped by signal {int(number)}; finished prompts are kept" in job.said()
    assert len(job.journal()) == 8 and job.failures() == []
    assert not job.folder.batch(0).exists() and not job.folder.shard_lease(0).exists()
    assert job.sandboxes() == [] and not job.folder.stop.exists()
    job.script()
    made = job.plan()
    assert [len(planned.rows) for planned in made.shards] == [4]
    assert job.here() == 0 and set(job.asked()) == {f"task {n}" for n in (8, 9, 10, 11)}
    assert [text_of(row) for row in job.rows()] == tasks(12)


def test_kill_9_in_the_middle_of_200_prompts_costs_those_in_flight(make: Any) -> None:
    job = make(tasks(200), script={"latency": 0.02}, concurrency=4)
    shard = job.start()
    wait_until(lambda: len(whole_lines(job)) >= 100, "half of the prompts")
    kill(shard)
    finished, first = {text_of(row) for row in job.journal_of_whole_lines()}, job.asked()
    assert 100 <= len(finished) < 200 and job.failures() == []
    job.script()
    made = job.plan()
    assert len(made.owed) == 200 - len(finished) and job.sandboxes() == [], "a start removes what the dead left"
    assert job.here() == 0
    assert not finished & job.asked().keys(), "a finished prompt is never asked again"
    assert len(set(first) & job.asked().keys()) <= 4
    assert Counter(map(text_of, job.rows())) == Counter(tasks(200)) and job.failures() == []


def whole_lines(job: Job) -> list[bytes]:
    journal = job.folder.journal(0)
    return journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []


def test_equal_prompts_keep_their_number_through_a_kill(make: Any) -> None:
    job = make(["same", "other", "same", "same"], script={"latency": 0.3}, concurrency=1)
    shard = job.start()
    wait_until(lambda: whole_lines(job), "the first row")
    kill(shard)
    assert len(job.journal_of_whole_lines()) == 1
    job.script()
    assert len(job.plan().owed) == 3
    assert job.here() == 0
    assert Counter(map(text_of, job.rows())) == {"same": 3, "other": 1} and job.asked() == {"same": 2, "other": 1}


def test_a_second_copy_waits_for_the_first_and_makes_no_call(make: Any) -> None:
    job = make(tasks(3), {"match": "task 1", "faults": [{"kind": "answer", "status": 500}]})
    first = Lease(job.folder.shard_lease(0))
    assert first.acquire() is None
    second = job.start()
    wait_until(lambda: f"waiting for {first.owner}" in job.said(), "the second waits")
    job.folder.batch(0).write_bytes(b"".join(encode(trajectory(job.prompts()[n])) for n in (0, 2)))
    written = stamp(job.folder.batch(0))
    assert second.poll() is None
    first.release()
    assert second.wait(60) == 0
    assert job.asked() == {}, "not even for the prompt that failed"
    assert stamp(job.folder.batch(0)) == written and not job.folder.shard_lease(0).exists()


def stamp(path: Path) -> tuple[int, int]:
    return path.stat().st_ino, path.stat().st_mtime_ns


def test_a_shard_whose_batch_is_whole_is_left_as_it_is(make: Any) -> None:
    job = make(tasks(2))
    assert job.here() == 0
    written = stamp(job.folder.batch(0))
    assert job.here() == 0 and stamp(job.folder.batch(0)) == written


def test_from_the_batch_files_rename_on_no_signal_changes_the_status(make: Any) -> None:
    job = make(tasks(1500))
    rows = [trajectory(prompt) for prompt in job.prompts()]
    job.folder.journal(0).parent.mkdir(exist_ok=True)
    job.folder.journal(0).write_bytes(b"".join(map(encode, rows)))
    job.plan()
    shard = job.start()
    while not job.folder.batch(0).exists():
        assert shard.poll() is None, job.said()
    sent = 0
    while shard.poll() is None:
        shard.send_signal((signal.SIGTERM, signal.SIGINT)[sent % 2])
        sent += 1
        time.sleep(0.002)
    assert shard.returncode == 0 and sent > 1, job.said()
    assert [id_of(row) for row in job.rows()] == [id_of(row) for row in rows] and job.asked() == {}


def test_before_its_walltime_a_shard_ends_in_order_and_the_next_attempt_goes_on(
    make: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    job = make(tasks(30), script={"latency": 0.3}, concurrency=1)
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(time.time() + 6))
    assert job.here() == 1
    kept = len(job.journal())
    assert "the time of this job is over; what is finished is kept" in caplog.text
    assert 0 < kept < 30 and not job.folder.batch(0).exists() and job.failures() == []
    monkeypatch.delenv("SLURM_JOB_END_TIME")
    job.script()
    assert job.here() == 0 and [text_of(row) for row in job.rows()] == tasks(30)
    assert job.asked() == dict.fromkeys(tasks(30)[kept:], 1), "nothing was asked twice: the last prompt had its margin"


def test_sandboxes_write_where_the_machine_has_a_local_disk(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job = make(["a"], script={"steps": 1})
    monkeypatch.setenv("NODE_DISK", str(job.root / "disk"))
    monkeypatch.setenv("TRAJECTILE_SCRATCH", "$NODE_DISK/mine")
    assert job.here() == 0 and job.rows()[0].tool_stats["terminal"].success == 1
    [own] = (job.root / "disk" / "mine").iterdir()
    assert list(own.iterdir()) == [] and not (job.folder.root / "scratch").exists()


def test_attempts_that_finish_nothing_are_not_repeated_in_the_same_start(make: Any) -> None:
    job = make(tasks(1), script={"latency": 30})
    for number in (1, 2):
        shard = job.start()
        wait_until(lambda number=number: job.asked() == {"task 0": number}, "the call")
        kill(shard)
    assert job.run() == 1 and job.asked() == {"task 0": 2}
    assert "the last 2 attempts at this shard finished no prompt" in job.said()
    job.script()
    job.plan()
    assert job.run() == 0 and len(job.rows()) == 1, "the next start tries again"


def test_where_few_files_may_be_open_fewer_prompts_run_at_once_and_none_fails(make: Any) -> None:
    job = make([f"task {n}" for n in range(40)], concurrency=40)
    job.script(latency=0.2)
    limited = ["bash", "-c", 'ulimit -n 112 && exec "$@"', "bash", *job.command()]
    done = subprocess.run(limited, cwd=job.root, env=job.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(job.rows()) == 40 and not job.failures()
    assert "8 prompts at once, not 40: the limit of open files (ulimit -Hn) is too low" in done.stderr
    soft = ["bash", "-c", 'ulimit -Sn 112 && exec "$@"', "bash", *job.command()]
    job.folder.batch(0).unlink()
    job.folder.journal(0).unlink()
    done = subprocess.run(soft, cwd=job.root, env=job.environment, capture_output=True, text=True)
    assert done.returncode == 0 and len(job.rows()) == 40 and "open files" not in done.stderr, done.stderr


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap makes the small disk")
def test_a_disk_that_fills_up_stops_the_shard_before_a_prompt_is_paid(make: Any) -> None:
    job = make(tasks(3), local_isolation="none")
    copy = job.root / "copy"
    job.folder.root.rename(copy)
    job.folder.root.mkdir()
    small = ["bwrap", "--dev-bind", "/", "/", "--size", str(12 << 20), "--tmpfs", str(job.folder.root)]
    script = 'cp -r "$1"/. data/r && shift && "$@"; echo status $?; ls data/r'
    line = [*small, "bash", "-c", script, "bash", str(copy), *job.command()]
    done = subprocess.run(line, cwd=job.root, capture_output=True, text=True)
    assert "status 1" in done.stdout, done.stderr
    assert "batch_0.jsonl" not in done.stdout and "run.stop" not in done.stdout
    assert "MB left; free some space and run again" in done.stderr and job.asked() == {}
