"""Snakemake itself, few runs, each of them real: plan, resume, deletion, kill, and what it shows."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from scripted_server.fixture import ScriptedServer

ROOT = Path(__file__).parents[1]
SNAKEMAKE = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"]
DIFFERING = ("batch_num", "timestamp", "duration_seconds", "model_seconds")


class Project:
    """A working directory with a dataset, run against the scripted server."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self.folder = folder
        self.server = server
        self.run_folder = folder / "data" / "r"
        self.dataset = folder / "data" / "p.jsonl"
        self.dataset.parent.mkdir(parents=True)

    def write(self, prompts: list[str]) -> None:
        self.dataset.write_text("".join(json.dumps({"prompt": text, "tag": text[-1]}) + "\n" for text in prompts))

    def command(self, *options: str, **config: Any) -> list[str]:
        settings = {"dataset_file": "data/p.jsonl", "run_name": "r", "model": "scripted", "batch_size": 3}
        settings |= {"base_url": self.server.base_url, **config}
        return [*SNAKEMAKE, *options, "--config", *(f"{name}={value}" for name, value in settings.items())]

    def snakemake(self, *options: str, **config: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*options, **config), cwd=self.folder, env=environment(), capture_output=True, text=True
        )

    def start(self, **config: Any) -> "subprocess.Popen[bytes]":
        with (self.folder / "out.txt").open("ab") as out:
            return subprocess.Popen(
                self.command(**config), cwd=self.folder, env=environment(), stdout=out, stderr=out, process_group=0
            )

    def asked(self) -> dict[str, int]:
        """Model calls by prompt, since the server started."""
        return {prompt: counts["calls"] for prompt, counts in self.server.counters()["prompts"].items()}

    def rows(self) -> list[dict[str, Any]]:
        lines = (self.run_folder / "trajectories.jsonl").read_bytes().splitlines()
        return [json.loads(line) for line in lines]

    def journalled(self) -> set[str]:
        """Prompts with a whole line in a journal."""
        return {
            json.loads(line)["conversations"][0]["value"]
            for path in (self.run_folder / "journal").glob("*.jsonl")
            for line in path.read_bytes().split(b"\n")[:-1]
        }


def environment() -> dict[str, str]:
    folder = str(Path(sys.executable).parent)
    return os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "TRAJECTILE_API_KEY": "test"}


def comparable(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for row in rows:
        for name in DIFFERING:
            del row["metadata"][name]
    return rows


def files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(latency=0.05) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, server: ScriptedServer) -> Project:
    server.control(reset_counters=True)
    return Project(tmp_path, server)


def test_a_run_makes_all_results_and_a_second_one_has_nothing_to_do(project: Project) -> None:
    project.write([f"task {n}" for n in range(8)])
    planned = project.snakemake("-n")
    assert planned.returncode == 0 and "shard 2: new: 2 to run" in planned.stdout + planned.stderr
    assert not project.run_folder.exists()

    made = project.snakemake()
    assert made.returncode == 0, made.stderr
    rows = project.rows()
    assert [row["conversations"][0]["value"] for row in rows] == [f"task {n}" for n in range(8)]
    assert [json.loads(row["source"]) for row in rows] == [{"tag": str(n)} for n in range(8)]
    assert all(row["completed"] and row["tool_stats"]["terminal"]["success"] == 1 for row in rows)
    statistics = json.loads((project.run_folder / "statistics.json").read_bytes())
    assert (statistics["total_prompts"], statistics["completed"], statistics["owed"]) == (8, 8, 0)
    assert json.loads((project.run_folder / "verdict.json").read_bytes())["holds"]
    assert json.loads((project.run_folder / "checkpoint.json").read_bytes())["finished"] == [[0, 7]]

    before = files(project.run_folder)
    again = project.snakemake()
    assert "Nothing to be done" in again.stderr and files(project.run_folder) == before


def test_only_new_and_edited_rows_run_whatever_else_changes(project: Project) -> None:
    prompts = [f"task {n}" for n in range(7)]
    project.write(prompts)
    assert project.snakemake().returncode == 0
    project.server.control(reset_counters=True)

    project.write([*reversed(prompts[1:]), "edited 0", "new 1", "new 2", "new 3"])
    made = project.snakemake(batch_size=2)
    assert made.returncode == 0, made.stderr
    assert set(project.asked()) == {"edited 0", "new 1", "new 2", "new 3"}
    starts = [row["conversations"][0]["value"] for row in project.rows()]
    assert starts == [*reversed(prompts[1:]), "edited 0", "new 1", "new 2", "new 3"]

    project.server.control(reset_counters=True)
    os.utime(project.dataset)
    assert project.snakemake(batch_size=4).returncode == 0
    assert project.asked() == {}


def test_a_deleted_batch_file_makes_its_rows_owed_and_no_others(project: Project) -> None:
    project.write([f"task {n}" for n in range(6)])
    assert project.snakemake().returncode == 0
    rows = comparable(project.rows())
    project.server.control(reset_counters=True)
    (project.run_folder / "batch_1.jsonl").unlink()
    planned = project.snakemake("-n")
    assert "shard 1: batch file is gone: 3 to run" in planned.stdout + planned.stderr
    assert project.snakemake().returncode == 0
    assert set(project.asked()) == {"task 3", "task 4", "task 5"}
    assert comparable(project.rows()) == rows


def test_kill_of_everything_costs_only_the_prompts_in_flight(project: Project, tmp_path: Path) -> None:
    prompts = [f"task {n}" for n in range(24)]
    project.write(prompts)
    run = project.start(batch_size=12, concurrency=2)
    wait_for(lambda: len(project.journalled()) >= 6)
    tree = [psutil.Process(run.pid), *psutil.Process(run.pid).children(recursive=True)]
    for process in tree:
        with suppress(psutil.NoSuchProcess):  # a sandbox ends with its owner
            process.send_signal(signal.SIGKILL)
    run.wait()
    finished = project.journalled()
    project.server.control(reset_counters=True)

    made = project.snakemake(batch_size=12, concurrency=2)
    assert made.returncode == 0, made.stderr
    assert not finished & set(project.asked()) and len(finished) >= 6
    undisturbed = Project(tmp_path / "other", project.server)
    undisturbed.write(prompts)
    assert undisturbed.snakemake(batch_size=5).returncode == 0
    assert comparable(project.rows()) == comparable(undisturbed.rows())


def test_failed_prompts_are_owed_and_below_the_bar_the_run_is_well(project: Project) -> None:
    project.write([f"task {n}" for n in range(11)])
    project.server.control(script={"rules": [{"match": "task 4", "faults": [{"kind": "answer", "status": 500}]}]})
    first = project.snakemake(max_retries=0)
    assert first.returncode == 0, first.stderr
    assert len(project.rows()) == 10
    [failure] = (project.run_folder / "failures.jsonl").read_text().splitlines()
    assert (json.loads(failure)["prompt_index"], json.loads(failure)["kind"]) == (4, "server_error")

    project.server.control(script={}, reset_counters=True)
    assert project.snakemake(max_retries=0).returncode == 0
    assert set(project.asked()) == {"task 4"} and len(project.rows()) == 11


def test_a_wrong_model_is_refused_before_anything_is_spent(project: Project) -> None:
    project.write(["task 0"])
    refused = project.snakemake(model="no-such-model")
    assert refused.returncode == 1 and "no-such-model" in refused.stderr
    assert project.asked() == {}


def test_a_second_run_of_the_same_name_names_the_living_owner(project: Project) -> None:
    project.write([f"task {n}" for n in range(40)])
    run = project.start(batch_size=40, concurrency=1)
    wait_for(lambda: project.journalled())
    second = project.snakemake(batch_size=40)
    assert second.returncode == 1 and f"process {run.pid}" in second.stderr
    os.killpg(run.pid, signal.SIGINT)
    run.wait()


def wait_for(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_begun_shards_go_on_at_another_batch_size_though_the_plan_is_the_same(project: Project) -> None:
    """Snakemake leaves out jobs behind an `ancient` file whose own job is due, as split_dataset is by other params."""
    project.write(["task 0", "task 1", "task 2"])
    project.server.control(outage={"kind": "answer", "status": 500})
    failing = {"preflight": "false", "max_retries": 0, "max_consecutive_failures": 1, "concurrency": 1}
    assert [project.snakemake(**failing).returncode for _ in range(2)] == [1, 1]
    project.server.control(outage=None)
    made = project.snakemake(batch_size=2)
    assert made.returncode == 0 and len(project.rows()) == 3, made.stderr


def test_a_checkout_with_spaces_in_its_path_runs_where_python_is_not_in_path(project: Project) -> None:
    project.write(["task"])
    checkout = project.folder / "my pröject (1)"
    checkout.mkdir()
    for name in ("Snakefile", "rules", "scripts", "config", "profiles", "envs"):
        (checkout / name).symlink_to(ROOT / name)
    command = project.command()
    command[command.index("--snakefile") + 1] = str(checkout / "Snakefile")
    folders = environment()["PATH"].split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if folder != str(Path(sys.executable).parent))
    made = subprocess.run(
        command, cwd=project.folder, env=environment() | {"PATH": path}, capture_output=True, text=True
    )
    assert made.returncode == 0 and len(project.rows()) == 1, made.stderr
