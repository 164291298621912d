"""What a Snakemake user types, on a run that is finished and on one that is not: nothing is paid for again."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import ROOT
from results_files import lines_of
from scripted_server.fixture import ScriptedServer
from test_workflow import Project, environment
from trajectile.rows import Trajectory

PROMPTS = [f"task {n}" for n in range(6)]
BROKEN = {"match": "task 4", "faults": [{"kind": "answer", "status": 500}]}


class Run(Project):
    """A project whose settings lie in my.yaml; `kept` are the files that nothing may change but a shard's own run."""

    def snake(self, *options: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), *options]
        given = [*command, "--configfile", str(self.folder / "my.yaml")]
        return subprocess.run(given, cwd=cwd or self.folder, env=environment(), capture_output=True, text=True)

    def kept(self) -> dict[str, bytes]:
        paths = [*self.run_folder.glob("batch_*.jsonl"), *(self.run_folder / "shards").glob("shard_*")]
        return {path.name: path.read_bytes() for path in paths}

    def results(self) -> list[str]:
        rows = lines_of(self.run_folder / "trajectories.jsonl", Trajectory)
        return [row.conversations[0].value for row in rows]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer({"rules": [BROKEN]}) as running:
        yield running


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory, server: ScriptedServer) -> Run:
    """A run with shard 0 finished and one row of shard 1 in its journal."""
    run = Run(tmp_path_factory.mktemp("unfinished"), server)
    run.write(PROMPTS)
    settings = {"dataset_file": "data/p.jsonl", "run_name": "r", "model": "scripted", "batch_size": 3}
    settings |= {"base_url": server.base_url, "max_retries": 0, "max_consecutive_failures": 1, "concurrency": 1}
    (run.folder / "my.yaml").write_text("".join(f"{name}: {value}\n" for name, value in settings.items()))
    assert run.snake("--cores", "1").returncode == 1
    server.control(script={}, reset_counters=True)
    return run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, server: ScriptedServer, unfinished: Run) -> Run:
    """The other run, copied and gone on with from elsewhere."""
    run = Run(tmp_path_factory.mktemp("copy") / "finished", server)
    shutil.rmtree(run.folder)
    shutil.copytree(unfinished.folder, run.folder)
    server.control(reset_counters=True)
    options = ["--directory", str(run.folder), "--cores", "1", "--forcerun", "run_batch", "--config", "concurrency=2"]
    done = run.snake(*options, cwd=run.folder.parent)
    assert done.returncode == 0, done.stderr
    assert run.asked().keys() == {"task 4", "task 5"} and run.results() == PROMPTS
    return run


def check_harmless(run: Run, options: str, says: str) -> None:
    """A command that ends well, says what it should, asks the model nothing and leaves all rows as they were."""
    run.server.control(reset_counters=True)
    before = run.kept()
    done = run.snake(*options.split())
    assert done.returncode == 0, done.stderr
    assert says in done.stdout + done.stderr
    assert run.asked() == {} and run.kept() == before


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("-n", "shard 1: never finished: 1 rows in its journal, 2 to run, 1 of them failed before"),
        ("--summary", "data/r/batch_1.jsonl"),
        ("--list-rules", "split_dataset (Cut the owed prompts into shards"),
        ("--lint", "Congratulations"),
        ("--unlock", ""),
        ("--touch --cores 1", ""),
    ],
    ids=lambda text: text if text.startswith("-") else "",
)
def test_looking_at_a_run_that_is_not_finished(unfinished: Run, options: str, says: str) -> None:
    check_harmless(unfinished, options, says)
    assert not (unfinished.run_folder / "batch_1.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--cores 1", "Nothing to be done"),
        ("--summary", "data/r/trajectories.jsonl"),
        ("--touch --cores 1", ""),
        ("--unlock", ""),
        ("--report report.html", "Report created"),
        ("--forcerun run_batch --cores 1", "Nothing to be done"),
        ("--delete-all-output --cores 1", "Deleting data/r/trajectories.jsonl"),
        ("-n", "merge_trajectories"),
        ("--forceall --cores 1", "6 of 6 prompts finished"),
    ],
    ids=lambda text: text if text.startswith("-") else "",
)
def test_nothing_of_a_finished_run_is_paid_again(finished: Run, options: str, says: str) -> None:
    check_harmless(finished, options, says)
    if "--delete-all-output" not in options and "-n" not in options:
        assert finished.results() == PROMPTS
