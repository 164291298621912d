"""The batch runner's --status, --clean, --retry_failed and --dry-run, and what a run says beside Snakemake."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from helpers import Job
from scripted_server.fixture import ScriptedServer
from test_batch_runner import DATASET, SNAKEMAKE, Project, begin, environment, folder
from trajectile.command_line.cli import main
from trajectile.planning.workflow import is_dry_run
from trajectile.processes import start_time
from trajectile.sandbox.scratch import unused

__all__ = ["folder"]
ENDED = "1 of 2 done, 0 running, 0 waiting for the server, 1 failed, 0 discarded"


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def job(tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    monkeypatch.chdir(tmp_path)
    made = Job(tmp_path, server, ["a", "b", "c", "d"], batch_size=2)
    yield made
    made.release()


def invoke(*options: str) -> Result:
    return CliRunner().invoke(main, options, catch_exceptions=False)


def test_status_reads_the_run_folder_only(job: Job) -> None:
    job.script({"match": "a", "faults": [{"kind": "answer", "status": 500}]})
    assert job.here(0) == 0
    job.release()
    (job.root / "prompts.jsonl").unlink()
    before = {path: path.stat().st_mtime_ns for path in job.root.rglob("*")}
    said = invoke("--status", "--run_name=r")
    assert said.exit_code == 0
    shown = dict(line.split(maxsplit=1) for line in said.output.splitlines() if " for " not in line)
    assert (shown["prompts"], shown["done"], shown["owed"], shown["failed"]) == ("4", "1 (25.0%)", "3", "1")
    assert "nobody now" in shown["made"] and "server_error" in shown["last"] and shown["rate"] != "no rate yet"
    assert {path: path.stat().st_mtime_ns for path in job.root.rglob("*")} == before
    watched = invoke("--status", "--watch", "--run_name=r")
    assert watched.exit_code == 0 and "1 of 4 done" in watched.stderr, "nobody makes it, so it ends"


@pytest.mark.parametrize("option", ["--status", "--clean"])
def test_a_run_that_is_not_there_has_no_status(job: Job, option: str) -> None:
    assert invoke(option).exit_code == 2
    result = invoke(option, "--run_name=other")
    assert result.exit_code == 2 and "other" in result.output and not (job.root / "data" / "other").exists()


def test_clean_removes_what_the_dead_left_and_never_results(job: Job) -> None:
    job.script()
    assert job.here(0) == 0
    kept = {path: path.read_bytes() for path in job.root.rglob("*") if path.is_file() and path.suffix != ".lease"}
    result = invoke("--clean", "--run_name=r")
    assert result.exit_code == 2 and "is being made by process" in result.output

    lease = job.folder.lease.read_bytes()
    job.release()
    assert invoke("--clean", "--run_name=r").output == "nothing to remove\n"
    dead = lease.replace(b'"pid":', b'"pid":9999')
    job.folder.lease.write_bytes(dead)
    job.folder.shard_lease(1).write_bytes(dead)
    job.folder.stop.write_text("{}")
    (job.folder.root / "keys" / ".batch_0.jsonl.keys.77@elsewhere.tmp").write_bytes(b"half")
    mine = unused(job.folder.scratch)
    host, pid, _, _ = mine.name.rsplit("-", 3)
    (job.folder.scratch / f"{host}-{pid}-1{start_time(int(pid))}-0").mkdir(parents=True)
    said = invoke("--clean", "--run_name=r").output
    assert said == "removed: 2 stale leases, 1 stop marker, 1 half-written file, 1 sandbox left behind\n"
    left = {path: path.read_bytes() for path in job.root.rglob("*") if path.is_file()}
    assert {path for path in kept if left.get(path) != kept[path]} == set()
    assert not job.folder.stop.exists() and job.sandboxes() == []


@pytest.mark.parametrize(
    ("arguments", "dry"),
    [
        (["-n"], True),
        (["-np"], True),
        (["--cores", "2", "--dry-run"], True),
        (["--dryrun"], True),
        (["--dag"], False),
        (["--config", "model=n"], False),
        (["-c4"], False),
        (["collect"], False),
    ],
)
def test_a_dry_run_is_known_by_its_options(arguments: list[str], dry: bool) -> None:
    assert is_dry_run(arguments) is dry


@pytest.fixture
def project(folder: Path) -> Iterator[Project]:
    with ScriptedServer() as server:
        yield Project(folder, server)


def test_a_dry_run_says_what_is_owed_and_the_dag_stays_a_dag(project: Project) -> None:
    config = ["--config", "dataset_file=data/p.jsonl", "run_name=r", "model=m", f"base_url={project.server.base_url}"]
    prices = ["price_prompt_per_million=2", "price_completion_per_million=10"]
    dry, dag = (
        subprocess.run([*SNAKEMAKE, *option, *config, *prices], cwd=project.folder, capture_output=True, text=True)
        for option in (["-n"], ["--dag"])
    )
    assert dry.returncode == 0 and "trajectile: 2 prompts to run in 1 shard, 0 done" in dry.stderr
    assert "cost roughly between 0.0" in dry.stderr and "trajectile:" not in dry.stdout
    assert dag.returncode == 0 and dag.stdout.startswith("digraph") and "trajectile:" not in dag.stderr
    assert not project.run_folder.root.exists() and not project.asked()


def test_a_dry_run_names_bad_rows_and_owes_nothing_to_collect(project: Project) -> None:
    (project.folder / "data" / "p.jsonl").write_text('{"prompt": "a"}\n{"prompt": ""}\n')
    begin(project.folder)
    before = sorted(project.run_folder.root.rglob("*"))
    config = ["--config", "dataset_file=data/p.jsonl", "run_name=r", "on_bad_row=skip", "settings_change=keep"]
    run, collect = (
        subprocess.run([*SNAKEMAKE, *targets, "-n", *config], cwd=project.folder, capture_output=True, text=True)
        for targets in ([], ["collect"])
    )
    for dry in (run, collect):
        assert dry.returncode == 0 and "(on_bad_row: skip):\n  line 2: the prompt is empty\n" in dry.stderr
    assert "1 prompt to run in 1 shard" in run.stderr and "to run in" not in collect.stderr
    assert sorted(project.run_folder.root.rglob("*")) == before


def test_failed_prompts_are_left_alone_until_they_are_to_be_retried(project: Project) -> None:
    mute = {"text": "done", "reasoning": ""}
    down = {"match": "a", "faults": [{"kind": "answer", "status": 500}]}
    project.server.control(script={"rules": [down, {"match": "b", "replies": [mute]}]})
    options = ["--max_attempts=1", "--max_retries=0", "--max_failed_fraction=0.4", "--reasoning_disabled"]
    first = project.begin(*options, DATASET)
    assert first.returncode == 1 and not project.verdict()["holds"], first.stderr
    assert project.results() == ["b"], "a row without reasoning is kept where it was not asked for"
    said = [line for line in first.stderr.splitlines() if "done, 0 running" in line]
    assert said[-1].startswith(f"trajectile: {ENDED}; ")
    assert first.stderr.count("last error: prompt 0: server_error") == 1
    assert "2 prompts to run in 1 shard, 0 done" in first.stderr
    assert "given up:  1 after max_attempts; to try them once more: python scripts/batch_runner.py" in first.stdout
    status = project.run("--status").stdout.splitlines()
    assert {line[:24].strip(): line[24:26].strip() for line in status}.items() >= {("owed", "0"), ("given up", "1")}

    project.server.control(script={"rules": [{"match": "a", "replies": [mute]}]}, reset_counters=True)
    again = project.run("--resume")
    assert again.returncode == 1 and not project.asked()
    retried = project.run("--retry_failed")
    assert retried.returncode == 0 and project.verdict()["holds"], retried.stderr
    assert project.asked() == {"a"} and project.results() == ["a", "b"]

    status, said = on_terminal(project, "--resume", "--", "-np", "collect")
    assert status == 0 and "python" in said and "collect" in said, (
        "a bundled flag and a target reach Snakemake as given"
    )


def on_terminal(project: Project, *options: str) -> tuple[int, str]:
    """Run batch_runner.py as from a keyboard; return its status and what it shows."""
    own, other = os.openpty()
    with subprocess.Popen(
        project.command(*options), cwd=project.folder, env=environment(), stdin=other, stdout=other, stderr=other
    ) as child:
        os.close(other)
        said = b""
        with suppress(OSError):  # what reading the terminal of nobody gives
            while part := os.read(own, 1 << 16):
                said += part
    os.close(own)
    return child.returncode, said.decode()


def test_plain_snakemake_shows_the_progress_too(project: Project) -> None:
    config = ["dataset_file=data/p.jsonl", "run_name=r", "model=scripted", f"base_url={project.server.base_url}"]
    done = subprocess.run(
        [*SNAKEMAKE, "--config", *config], cwd=project.folder, env=path_environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "trajectile: 2 of 2 done, 0 running" in done.stderr


def path_environment() -> dict[str, str]:
    names = environment()
    return names | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{names['PATH']}"}
