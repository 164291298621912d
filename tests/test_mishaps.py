"""Shards that find nothing to run on: when that ends the run, and when it is left to the next machine."""

import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from helpers import Job, wait_until
from scripted_server.fixture import ScriptedServer
from test_serving import Serving
from trajectile.run_folder.lease import Owner
from trajectile.run_folder.stop import stopped

BROKEN = "test ! -e {folder}/broken || exit 4;"


@pytest.fixture
def serving(tmp_path: Path) -> Serving:
    return Serving(tmp_path)


@pytest.fixture
def unisolated(tmp_path: Path) -> Iterator[Job]:
    """A run on a machine that cannot isolate commands as its settings ask."""
    with ScriptedServer(steps=0) as server:
        job = Job(tmp_path, server, [f"task {n}" for n in range(4)], batch_size=1, local_isolation="bwrap")
        job.environment["PATH"] = str(tmp_path)  # no bwrap
        yield job
        job.release()


def run_beside_another_machine(job: Job, number: int) -> int:
    """Run a shard while the last one is at work on another machine."""
    lease = job.folder.shard_lease(len(job.planned.shards) - 1)
    lease.parent.mkdir(exist_ok=True)
    lease.write_bytes(msgspec.json.encode(Owner("n2", 1, 1.0, "7", "there")))
    status = job.run(number)
    lease.unlink()
    return status


def test_a_first_machine_that_cannot_serve_leaves_the_others_their_chance(serving: Serving) -> None:
    command = serving.command(before=BROKEN.format(folder=serving.folder))
    job = serving.job([f"task {n}" for n in range(6)], command, batch_size=1)
    (serving.folder / "broken").touch()
    assert [run_beside_another_machine(job, number) for number in range(4)] == [1, 1, 1, 1]
    assert "ended at its start with status 4" in job.said(3) and not job.folder.stop.exists()
    assert job.run(4) == 1 and "ended at its start with status 4" in stopped(job.folder)
    (serving.folder / "broken").unlink()
    assert job.run(5) == 1 and serving.asked() == []
    job.plan()
    assert job.run(5) == 0, "the next start begins anew"


def test_a_server_that_dies_again_and_again_stops_the_run(serving: Serving) -> None:
    asked = f"$(grep -c hopeless {serving.log})"
    dying = f'n={asked}; (while test "{asked}" = "$n"; do sleep 0.1; done; kill -9 $$) &'
    hopeless = {"regex": "hopeless", "latency": 120}
    prompts = ["hopeless 0", "hopeless 1", "good", *(f"hopeless {n}" for n in range(2, 6))]
    job = serving.job(prompts, serving.command(hopeless, before=dying), batch_size=1)
    assert [job.run(number) for number in (0, 1)] == [1, 1]
    assert job.run(2) == 0, "what finishes a prompt shows that servers work"
    assert [job.run(number) for number in (3, 4)] == [1, 1] and not job.folder.stop.exists()
    assert job.run(5) == 1
    assert "ended while it was in use, by signal 9" in stopped(job.folder)
    assert job.run(6) == 1 and len(serving.pids()) == 6, "the last shard starts none"


def test_attempts_that_end_while_the_server_loads_finish_nothing(serving: Serving) -> None:
    job = serving.job(["a"], serving.command(before="sleep 300;"))
    for number in (1, 2):
        shard = job.start()
        wait_until(lambda number=number: len(serving.pids()) == number, "the start of the server")
        shard.send_signal(signal.SIGTERM)
        assert shard.wait(60) == 143
    assert job.run() == 1 and len(serving.pids()) == 2
    assert "the last 2 attempts at this shard finished no prompt" in job.said()


def test_without_isolation_one_machine_is_all_there_is(unisolated: Job) -> None:
    assert unisolated.run(0) == 1
    assert "local sandboxes cannot be isolated as local_isolation: bwrap asks" in stopped(unisolated.folder)


def test_without_isolation_a_node_of_a_cluster_stops_nobody_else(unisolated: Job) -> None:
    unisolated.environment["SLURM_JOB_ID"] = "7"
    assert [run_beside_another_machine(unisolated, number) for number in range(3)] == [1, 1, 1]
    assert "local sandboxes cannot be isolated" in unisolated.said(0) and not unisolated.folder.stop.exists()
