import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from helpers import Job, wait_until
from scripted_server.fixture import ScriptedServer
from trajectile.configuration.settings import Settings
from trajectile.errors import FatalError, UserError
from trajectile.planning.preparation import prepare_run
from trajectile.planning.start import begin_run
from trajectile.processes import start_time
from trajectile.run_folder.lease import Lease, read_owner
from trajectile.run_folder.stop import mark_stop, stopped
from trajectile.sandbox.scratch import unused


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(models=["scripted"], api_key="right") as running:
        yield running


@pytest.fixture
def job(server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    """A run that has started once; its lease is free."""
    monkeypatch.setenv("TRAJECTILE_API_KEY", "right")
    monkeypatch.chdir(tmp_path)
    made = Job(tmp_path, server, ["a", "b"], preflight=True, ephemeral_system_prompt="SECRET RECIPE")
    made.release()
    yield made
    made.release()


def test_what_the_shards_go_by_is_written(job: Job) -> None:
    settings = msgspec.json.decode(job.folder.settings_json.read_bytes(), type=Settings)
    assert (settings.model, settings.ephemeral_system_prompt) == ("scripted", "SECRET RECIPE")
    identity = json.loads(job.folder.run_json.read_bytes())
    assert identity["frozen"]["model"] == "scripted" and identity["dataset"]["prompts"] == 2
    assert {"terminal", "patch"} <= set(identity["tools"]) and identity["settings_digest"] in identity["history"]
    assert identity["toolsets"].keys() == {"terminal", "file"}
    assert {"terminal", "process"} <= set(identity["toolsets"]["terminal"])
    assert sorted(name for names in identity["toolsets"].values() for name in names) == identity["tools"]
    assert {tool["function"]["name"] for tool in identity["tool_schemas"]} == set(identity["tools"])
    assert b"SECRET RECIPE" not in job.folder.run_json.read_bytes(), "run.json keeps its digest alone"
    assert b"right" not in job.folder.run_json.read_bytes() + job.folder.settings_json.read_bytes()


def test_a_living_run_is_not_started_twice(job: Job) -> None:
    run = prepare_run(job.config)
    first = begin_run(run, asks_model=False)
    with pytest.raises(UserError, match=f"run r is being made by process {os.getpid()} on"):
        begin_run(run, asks_model=False)
    first.release()
    second = begin_run(run, asks_model=False)
    assert read_owner(job.folder.lease) == second.owner
    second.release()


def test_a_start_forgets_the_stop_of_the_one_before(job: Job) -> None:
    lease = Lease(job.folder.lease)
    lease.acquire()
    mark_stop(job.folder, "no credit")
    lease.release()
    job.plan()
    assert not job.folder.stop.exists() and stopped(job.folder) == ""


def test_the_dead_runs_scratch_folders_are_removed_and_no_others(job: Job) -> None:
    mine = unused(job.folder.scratch)
    host, pid, began, _ = mine.name.rsplit("-", 3)
    assert began == start_time(int(pid))
    dead = job.folder.scratch / f"{host}-{pid}-1{began}-0"
    elsewhere = job.folder.scratch / f"another-{pid}-1{began}-0"
    for folder in (mine, dead, elsewhere):
        folder.mkdir(parents=True)
    job.plan()
    assert set(job.folder.scratch.iterdir()) == {mine, elsewhere}


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_bubblewrap_that_lost_its_owner_at_its_start_is_ended(job: Job) -> None:
    mine = unused(job.folder.scratch)
    host, pid, began, _ = mine.name.rsplit("-", 3)
    dead = mine.with_name(f"{host}-{pid}-1{began}-0")
    for folder in (mine, dead):
        (folder / "home").mkdir(parents=True)
    command = ["bwrap", "--dev-bind", "/", "/", "--chdir"]
    left, living = (subprocess.Popen([*command, str(folder / "home"), "sleep", "60"]) for folder in (dead, mine))
    try:
        for process in (left, living):
            wait_until(lambda pid=process.pid: psutil.Process(pid).name() == "bwrap", "bwrap")
        job.plan()
        assert left.wait(30) == -signal.SIGKILL and not dead.exists()
        assert living.poll() is None
    finally:
        for process in (left, living):
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("config", "key", "said"),
    [
        ({"model": "other", "settings_change": "keep"}, "right", "has no model other"),
        ({}, "wrong", "set TRAJECTILE_API_KEY"),
        ({"base_url": "http://127.0.0.1:9/v1", "settings_change": "keep"}, "right", "No model server answers"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_runs(
    job: Job, monkeypatch: pytest.MonkeyPatch, config: dict[str, str], key: str, said: str
) -> None:
    monkeypatch.setenv("TRAJECTILE_API_KEY", key)
    before = job.folder.run_json.read_bytes()
    run = prepare_run(job.config | config)
    with pytest.raises(FatalError, match=said):
        begin_run(run, asks_model=True)
    assert job.folder.run_json.read_bytes() == before and job.server.counters()["calls"] == 0
    begin_run(run, asks_model=False).release()


def test_a_refused_start_does_not_keep_the_lease(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAJECTILE_API_KEY", "wrong")
    run = prepare_run(job.config)
    with pytest.raises(FatalError):
        begin_run(run, asks_model=True)
    assert read_owner(job.folder.lease) is None


def test_the_start_says_how_commands_are_isolated(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    job.plan(local_isolation="none")
    assert "Commands run WITHOUT isolation" in capsys.readouterr().err
