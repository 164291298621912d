"""What a shard costs on a cluster beside its prompts, from sbatch to the line that says that it is finished."""

import json
import os
import re
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import click
from measuring import ROOT, files_below, print_table
from scripted_server.fixture import ScriptedServer, read_log
from slurm.cluster import PYTHON, problem

STOPWATCH = Path(__file__).parent / "stopwatch"
PARTS = (
    "queue: sbatch to the job's first Python",
    "first Snakemake: start, parse, srun",
    "second Snakemake: start, parse",
    "run_batch: start to its first call",
    "the prompts",
    "the last answer to the end of the first Snakemake",
    "seen: from there to 'Finished'",
)


class Shard(NamedTuple):
    """Epoch seconds at which each part of PARTS begins, and at which the last one ends; CPU seconds by process."""

    instants: list[float]
    cpu: list[float]


@click.command(help=__doc__)
@click.option("--shards", default=16, show_default=True)
@click.option("--batch_size", default=10, show_default=True)
@click.option("--latency", default=1.0, show_default=True, help="Seconds a model call takes.")
def main(shards: int, batch_size: int, latency: float) -> None:
    if reason := problem():
        raise click.ClickException(reason)
    with (
        tempfile.TemporaryDirectory(prefix="bench_slurm_") as folder,
        ScriptedServer(latency=latency, steps=0) as server,
    ):
        work = Path(folder)
        prompts = "".join(json.dumps({"prompt": f"prompt {n}"}) + "\n" for n in range(shards * batch_size))
        (work / "prompts.jsonl").write_text(prompts)
        begun = time.perf_counter()
        seen = _run(work, server, batch_size)
        wall = time.perf_counter() - begun
        notes = [json.loads(line) for line in (work / "times.jsonl").read_text().splitlines()]
        _show(_shards(notes, server, seen, batch_size), wall)
        _show_head(notes, work, shards)


def _run(work: Path, server: ScriptedServer, batch_size: int) -> dict[int, float]:
    """Run on the cluster; return when the head said that a shard was finished."""
    pairs = ["dataset_file=prompts.jsonl", "run_name=r", "model=scripted", "distribution=terminal_only"]
    pairs += [f"base_url={server.base_url}", f"batch_size={batch_size}"]
    command = [PYTHON, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--workflow-profile", "slurm"]
    command += ["--slurm-init-seconds-before-status-checks", "5", "--set-resources", "run_batch:mem_mb=400"]
    path = f"{Path(PYTHON).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PYTHONPATH": str(STOPWATCH), "STOPWATCH_LOG": str(work / "times.jsonl"), "PATH": path}
    environment = {**os.environ, **own, "TRAJECTILE_API_KEY": "none"}
    output, joined = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(
        [*command, "--config", *pairs], cwd=work, env=environment, stdout=output, stderr=joined, text=True
    ) as head:
        assert head.stdout
        said = [(time.time(), line) for line in head.stdout]
    if head.returncode:
        raise click.ClickException("".join(line for _, line in said))
    return _finished(said)


def _finished(said: Iterable[tuple[float, str]]) -> dict[int, float]:
    shard_of: dict[str, int] = {}
    seen: dict[int, float] = {}
    for at, line in said:
        if begun := re.match(r"Job (\d+): shard (\d+):", line):
            shard_of[begun[1]] = int(begun[2])
        elif (ended := re.match(r"Finished jobid: (\d+) \(Rule: run_batch\)", line)) and ended[1] in shard_of:
            seen[shard_of[ended[1]]] = at
    return seen


def _shards(notes: list[dict], server: ScriptedServer, seen: dict[int, float], batch_size: int) -> list[Shard]:
    submitted = {int(found[1]): note["began"] for note in notes if (found := _match("wildcards_([0-9]+)", note))}
    processes = defaultdict(dict)
    for note in notes:
        if name := _program(note):
            processes[_shard(note)][name] = note
    calls = defaultdict(list)
    for event in read_log(server.log):
        calls[int(event["prompt"].split()[1]) // batch_size].append(event["time"])
    return [_timeline(submitted[n], processes[n], calls[n], seen[n]) for n in sorted(seen)]


def _timeline(submitted: float, processes: dict[str, dict], calls: list[float], seen: float) -> Shard:
    names = ("outer", "inner", "run_batch")
    begun = [processes[name]["began"] for name in names]
    instants = [submitted, *begun, min(calls), max(calls), processes["outer"]["ended"], seen]
    return Shard(instants, [processes[name]["cpu"] for name in names])


def _match(pattern: str, note: dict) -> "re.Match[str] | None":
    return re.search(pattern, note.get("sbatch", ""))


def _program(note: dict) -> str:
    """Tell the two Snakemakes of a job and run_batch by their command lines."""
    argv = note["argv"]
    if "ended" not in note:
        return ""
    if "snakemake" in argv and "remote" in argv:
        return "outer" if "slurm-jobstep" in argv else "inner"
    return "run_batch" if any(word.endswith("run_batch.py") for word in argv) else ""


def _shard(note: dict) -> int:
    words = " ".join(note["argv"])
    found = re.search(r"shard=([0-9]+)", words) or re.search(r"--shard ([0-9]+)", words)
    assert found, words
    return int(found[1])


def _show(shards: list[Shard], wall: float) -> None:
    rows = []
    for number, part in enumerate(PARTS):
        spans = [shard.instants[number + 1] - shard.instants[number] for shard in shards]
        rows.append([part, f"{statistics.median(spans):.2f}", f"{max(spans):.2f}"])
    for number, name in enumerate(("first Snakemake", "second Snakemake", "run_batch")):
        spent = [shard.cpu[number] for shard in shards]
        rows.append([f"CPU of {name}", f"{statistics.median(spent):.2f}", f"{max(spent):.2f}"])
    print_table(f"{len(shards)} shards, {wall:.0f} s in all", ["part", "median s", "max s"], rows)


def _show_head(notes: list[dict], work: Path, shards: int) -> None:
    [head] = [note for note in notes if "--workflow-profile" in note["argv"] and "ended" in note]
    files = files_below(work / "data" / "r", work / ".snakemake")
    cpu, memory = head["cpu"], head["memory"] / 1e6
    click.echo(f"head: {cpu:.1f} s of CPU, {1000 * cpu / shards:.0f} ms a shard, {memory:.0f} MB")
    click.echo(f"{files / shards:.1f} files a shard")


if __name__ == "__main__":
    main()
