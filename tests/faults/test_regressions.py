"""What storms have found, each as a short test of its own."""

import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from helpers import Job
from results_files import Run
from scripted_server.fixture import ScriptedServer
from split_dataset import main as split_dataset
from trajectile.planning.inventory import failed_attempts, take_inventory
from trajectile.planning.plan import Plan, make_plan
from trajectile.planning.preparation import prepare_run
from trajectile.planning.start import begin_run
from trajectile.rows import PromptRow
from trajectile.run_folder.batch import Manifest
from trajectile.run_folder.ids import make_id, row_ids
from trajectile.run_folder.paths import remove_temporaries, write_atomic

from faults.pipeline import pipeline


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path, [f"prompt {n}" for n in range(5)])


def plan(run: Run, batch_size: int = 5) -> Plan:
    inventory = take_inventory(run.folder, run.dataset, on_bad_row="error", max_samples=None)
    return make_plan(inventory, failed_attempts(run.folder), batch_size=batch_size)


def split(run: Run, made: Plan) -> Result:
    options = ["--run_folder", str(run.folder.root), "--dataset_file", str(run.dataset), "--batch_size", "5"]
    return CliRunner().invoke(split_dataset, [*options, "--digest", made.digest])


def manifest(run: Run, made: Plan) -> Manifest:
    return msgspec.json.decode(run.folder.manifest(made.digest).read_bytes(), type=Manifest)


def ids(rows: list[PromptRow]) -> list[bytes]:
    return [make_id(row.prompt_key, row.ordinal) for row in rows]


def test_a_start_goes_on_beside_a_shard_that_outlived_the_last_one(tmp_path: Path) -> None:
    with pipeline(tmp_path, latency=0.4, batch_size=100) as run:
        run.want(*(f"prompt {n}" for n in range(30)))
        first = run.start()
        run.wait(first, lambda: run.rows().total() >= 2)
        first.root.kill()
        first.root.wait()
        assert run.run() == 0, run.said()
        assert run.merged() == [f"prompt {n}" for n in range(30)]
        assert set(run.asked().values()) == {1}


def test_results_follow_the_dataset_where_snakemake_has_forgotten_all(tmp_path: Path) -> None:
    with pipeline(tmp_path) as run:
        run.want(*"abcd")
        assert run.run() == 0
        shutil.rmtree(tmp_path / ".snakemake")
        run.want(*"dcb")
        assert run.run() == 0
        assert run.merged() == list("dcb") and run.asked() == dict.fromkeys("abcd", 1)


def test_a_shard_may_get_on_between_plan_and_split(run: Run) -> None:
    assert split(run, plan(run)).exit_code == 0
    run.journal(0, run.row(0))
    planned = plan(run)
    run.journal(0, run.row(0), run.row(1))
    assert split(run, planned).exit_code == 0
    assert manifest(run, planned).shards["0"].to_run == 3


def test_a_shard_that_was_finished_between_plan_and_split_has_nothing_to_run(run: Run) -> None:
    assert split(run, plan(run)).exit_code == 0
    run.journal(0, run.row(0))
    planned = plan(run)
    run.journal(0, *(run.row(n) for n in range(5)))
    run.batch(0, *(run.row(n) for n in range(5)))
    assert split(run, planned).exit_code == 0
    assert manifest(run, planned).shards == {}


def test_a_shard_that_was_finished_meanwhile_gets_its_batch_file_back(tmp_path: Path) -> None:
    with ScriptedServer(steps=0) as server:
        job = Job(tmp_path, server, ["a", "b", "c"])
        assert job.run() == 0
        made = job.folder.batch(0).read_bytes()
        job.folder.manifest(job.planned.digest).write_bytes(msgspec.json.encode(Manifest(job.planned.digest, {})))
        job.folder.batch(0).unlink()
        assert job.run() == 0
        assert job.folder.batch(0).read_bytes() == made
        assert job.asked() == {"a": 1, "b": 1, "c": 1}


def test_a_shard_that_is_about_to_begin_shares_no_row_with_a_new_one(run: Run) -> None:
    assert split(run, plan(run)).exit_code == 0
    run.set_dataset([*(f"prompt {n}" for n in range(4)), "edited"])
    made = plan(run)
    assert {shard.number: (shard.rows, shard.withdrawn) for shard in made.shards} == {
        0: (ids(run.prompts[:4]), [row for row in row_ids_of_shard(run) if row not in ids(run.prompts)]),
        1: (ids(run.prompts[4:]), []),
    }


def row_ids_of_shard(run: Run) -> list[bytes]:
    lines = run.folder.shard(0).read_bytes().splitlines()
    return ids([msgspec.json.decode(line, type=PromptRow) for line in lines])


def test_half_written_files_of_killed_processes_are_removed(run: Run) -> None:
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    owners = {"dead": (dead.pid, socket.gethostname()), "alive": (os.getpid(), socket.gethostname()), "far": (1, "x")}
    paths = {name: run.folder.root / "keys" / f".{name}.{pid}@{host}.tmp" for name, (pid, host) in owners.items()}
    for path in paths.values():
        write_atomic(path, b"half")
    remove_temporaries(run.folder.root)
    assert {name for name, path in paths.items() if path.exists()} == {"alive", "far"}


def test_no_batch_file_that_snakemake_is_about_to_delete_is_the_only_copy_of_a_row(tmp_path: Path) -> None:
    with ScriptedServer(steps=0) as server, contextlib.chdir(tmp_path):
        job = Job(tmp_path, server, ["a", "b", "c"])
        stale = prepare_run(job.config)
        assert job.run() == 0
        job.folder.journal(0).unlink()
        job.release()
        begin_run(stale, asks_model=False).release()
        assert set(row_ids(job.folder.journal(0))) == set(row_ids(job.folder.batch(0)))
