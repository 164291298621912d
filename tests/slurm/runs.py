"""A run on the cluster in a folder of its own, and the evidence that it leaves."""

import json
import os
import shlex
import subprocess
import uuid
from collections import Counter
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from faults.evidence import count_rows, durable_rows, lines_of, prompt_of
from scripted_server.fixture import ScriptedServer, read_log

from slurm.cluster import PYTHON, Job, ask, jobs, running, wait_for

ROOT = Path(__file__).parents[2]
VARYING = ("batch_num", "timestamp", "duration_seconds", "model_seconds")
POLL = ("--slurm-init-seconds-before-status-checks", "1")
SMALL = "run_batch:mem_mb=400"


class Run:
    """A folder with a dataset of `count` prompts that no other run has; what the heads say goes to log.txt."""

    def __init__(self, work: Path, server: ScriptedServer, count: int, **settings: Any) -> None:
        self.work, self.server = work, server
        self.folder = work / "data" / "r"
        self.tag = uuid.uuid4().hex[:8]
        self.prompts = [f"{self.tag} {number}" for number in range(count)]
        self.settings = {
            "dataset_file": "prompts.jsonl",
            "run_name": "r",
            "model": "scripted",
            "distribution": "terminal_only",
            "base_url": server.base_url,
            "concurrency": 2,
            **settings,
        }
        self.heads: list[subprocess.Popen[bytes]] = []
        work.mkdir(parents=True, exist_ok=True)
        self.write(self.prompts)

    def write(self, prompts: list[str]) -> None:
        (self.work / "prompts.jsonl").write_text("".join(json.dumps({"prompt": text}) + "\n" for text in prompts))

    def snakemake(
        self, *options: str, resources: str = SMALL, retries: int = 5, at_once: int = 100
    ) -> "subprocess.Popen[bytes]":
        """Start a head process, by default one that sends the shards to the cluster."""
        most = ("--retries", str(retries), "--jobs", str(at_once))
        there = ("--workflow-profile", "slurm", *POLL, *most, "--set-resources", *resources.split())
        return self._start(self._snakemake(*(options or there)))

    def in_one_allocation(self) -> "subprocess.Popen[bytes]":
        """Start a job that runs the whole workflow on the CPUs that it is given; its output goes to log.txt."""
        head = shlex.join(self._snakemake("--cores", "2"))
        job = (
            "--wait",
            "--ntasks",
            "1",
            "--cpus-per-task",
            "2",
            "--mem",
            "2000",
            "--output",
            "log.txt",
            "--wrap",
            head,
        )
        return self._start(["sbatch", *job])

    def _snakemake(self, *options: str) -> list[str]:
        pairs = [f"{name}={value}" for name, value in self.settings.items()]
        return [PYTHON, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), *options, "--config", *pairs]

    def batch_runner(self, *options: str) -> "subprocess.Popen[bytes]":
        """Start batch_runner.py with `--executor slurm` behind its `--`."""
        pairs = [f"--{name}={value}" for name, value in self.settings.items()]
        there = ("--", "--executor", "slurm", *POLL, "--set-resources", SMALL)
        return self._start([PYTHON, str(ROOT / "scripts" / "batch_runner.py"), *pairs, *options, *there])

    def _start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        environment = self.environment | {"TRAJECTILE_API_KEY": "none"}
        with (self.work / "log.txt").open("ab") as log:
            head = subprocess.Popen(
                command, cwd=self.work, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        self.heads.append(head)
        return head

    def cancel(self) -> None:
        """End what a test that failed left: heads and jobs."""
        for head in self.heads:
            head.kill()
            head.wait()
        for job in jobs(self.work):
            ask("scancel", job.id)

    @cached_property
    def environment(self) -> dict[str, str]:
        """What the heads' environment is; changes to it hold for the heads that are started after them."""
        return {**os.environ, "PATH": f"{Path(PYTHON).parent}{os.pathsep}{os.environ['PATH']}"}

    def said(self) -> str:
        return (self.work / "log.txt").read_text()

    def shard_logs(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("logs/run_batch/*.log")))

    def asked(self) -> Counter[str]:
        """Count this run's model calls by prompt."""
        events = read_log(self.server.log)
        return Counter(e["prompt"] for e in events if e["event"] == "asked" and e["prompt"].startswith(self.tag))

    def wait_for_rows(self, count: int, seconds: float = 120) -> None:
        """Wait until so many rows are on disk."""
        wait_for(lambda: len(durable_rows(self.folder)) >= count, seconds, f"{count} rows")

    def at_work(self) -> list[Job]:
        """Return the running jobs that have begun with their shards."""
        owners = [path.read_bytes() for path in self.folder.glob("journal/*.lease") if path.exists()]
        ids = {json.loads(owner)["job_id"] for owner in owners}
        return [job for job in running(self.work) if job.id in ids]

    def problem(self) -> str:
        """Return what is wrong with a run that is over: each prompt has one row, asked for once it was never again."""
        rows = count_rows(durable_rows(self.folder))
        if rows != Counter(self.prompts):
            return f"rows missing {dict(Counter(self.prompts) - rows)}, too many {dict(rows - Counter(self.prompts))}"
        merged = [prompt_of(row) for row in self.trajectories()]
        if merged != self.prompts:
            return f"trajectories.jsonl holds {merged}"
        twice = self.paid_twice()
        return f"paid twice: {twice}" if twice else ""

    def paid_twice(self) -> list[str]:
        """Return the prompts that a model was asked about after they had a row."""
        finished = {prompt_of(row): _epoch(row["metadata"]["timestamp"]) for row in self.trajectories()}
        events = [event for event in read_log(self.server.log) if event["event"] == "asked"]
        return [e["prompt"] for e in events if e["prompt"] in finished and e["time"] > finished[e["prompt"]]]

    def trajectories(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in lines_of(self.folder / "trajectories.jsonl")]

    def comparable(self) -> list[dict[str, Any]]:
        """The trajectories less what differs between equal runs."""
        rows = self.trajectories()
        return [{**row, "metadata": {k: v for k, v in row["metadata"].items() if k not in VARYING}} for row in rows]


def _epoch(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
