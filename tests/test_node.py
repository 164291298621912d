"""What a job on a node does with the Snakefile: it makes its shard, reads no dataset and plans nothing."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import ROOT, Job, text_of
from scripted_server.fixture import ScriptedServer
from trajectile.planning.workflow import PLAN

WITNESS = ROOT / "tests" / "slurm" / "witness"
UNUSED = ("trajectile.planning.inventory", "trajectile.planning.plan", "trajectile.tools.registry")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """A run that was planned and whose head lives elsewhere."""
    with ScriptedServer(steps=0) as server:
        yield Job(tmp_path_factory.mktemp("node"), server, ["a", "b"])


def snakemake(job: Job, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Start Snakemake as an executor does on a node."""
    config = [f"{name}={value}" for name, value in job.config.items()]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--mode", "remote"]
    command += ["--target-jobs", "run_batch:shard=0", "--allowed-rules", "run_batch", "--cores", "1"]
    command += ["--force", "--no-hooks", "--nolock", "--ignore-incomplete"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    given = {**os.environ, "PATH": path, **environment}
    given = {name: value for name, value in given.items() if value}
    return subprocess.run(
        [*command, "--config", *config], cwd=job.root, env=given, capture_output=True, text=True, timeout=200
    )


def test_a_job_needs_the_plan_of_its_head(job: Job) -> None:
    result = snakemake(job, **{PLAN: ""})
    assert result.returncode == 1
    assert f"{PLAN} is not set: the executor does not pass the environment on" in result.stderr


def test_a_job_makes_its_shard_and_neither_reads_the_dataset_nor_imports_what_plans(job: Job) -> None:
    (job.root / "prompts.jsonl").rename(job.root / "away.jsonl")
    witness = job.root / "opened.txt"
    own = {PLAN: job.planned.digest, "PYTHONPATH": str(WITNESS), "WITNESS_LOG": str(witness), "SLURM_JOB_ID": "1"}
    result = snakemake(job, **own)
    assert result.returncode == 0, result.stderr
    assert [text_of(row) for row in job.rows()] == ["a", "b"]
    opened = witness.read_text().splitlines()
    assert any(path.endswith("rollout.smk") for path in opened)
    assert [path for path in opened if "data/r/" in path and "logs" not in path] == []
    assert [path for path in opened for name in UNUSED if f"{name.replace('.', '/')}" in path] == []
