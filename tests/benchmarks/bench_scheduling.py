"""Measures what Snakemake itself takes for each shard of a large run: its CPU and memory while jobs come and go.

    python tests/benchmarks/bench_scheduling.py --shards 2000 --shards 10000

The jobs are simulated: where run_batch would run prompts, a shell script puts its batch file in place.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import click
from measuring import ROOT, files_below, print_table, run

STOPWATCH = Path(__file__).parent / "stopwatch"
SHARD_SIZE = 10
COLUMNS = ["shards", "CPU s", "CPU ms a shard", "MB", "dry run CPU s", "files a shard"]
CONFIG = ["dataset_file=prompts.jsonl", "run_name=bench", "model=scripted", "preflight=false"]
CONFIG += ["base_url=http://127.0.0.1:9/v1", f"batch_size={SHARD_SIZE}"]
STAND_IN = """#!/bin/sh
case $1 in
  */run_batch.py) exec cp "made/batch_$5.jsonl" "$3" ;;
  *) exec {python} "$@" ;;
esac
"""


def prepare(shards: int) -> None:
    """Make a run whose shards are all finished, and take its batch files away."""
    generator = str(Path(__file__).with_name("planning_runs.py"))
    run([sys.executable, generator, str(shards * SHARD_SIZE), str(SHARD_SIZE)])
    Path("made").mkdir()
    for batch in Path("data/bench").glob("batch_*.jsonl"):
        batch.rename(Path("made") / batch.name)
    stand_in = Path("bin/python")
    stand_in.parent.mkdir()
    stand_in.write_text(STAND_IN.format(python=sys.executable))
    stand_in.chmod(0o755)


def snakemake(*options: str) -> tuple[float, float]:
    """Run Snakemake; return its own CPU seconds, less its jobs', and its peak memory in MB."""
    log = Path("times.jsonl")
    log.unlink(missing_ok=True)
    environment = {
        "PATH": f"{Path('bin').absolute()}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(STOPWATCH),
        "STOPWATCH_LOG": str(log.absolute()),
    }
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--cores", "16", *options]
    run([*command, "--quiet", "--config", *CONFIG], env=environment)
    notes = [json.loads(line) for line in log.read_text().splitlines()]
    [head] = [note for note in notes if "snakemake" in note["argv"]]
    return head["cpu"], head["memory"] / 1e6


def measure(shards: int) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="bench_scheduling_") as folder:
        os.chdir(folder)
        prepare(shards)
        dry, _ = snakemake("-n")
        cpu, memory = snakemake("--until", "run_batch")
        if len(list(Path("data/bench").glob("batch_*.jsonl"))) != shards:
            raise click.ClickException("not all batches were made")
        files = files_below(Path("data/bench"), Path(".snakemake"))
        os.chdir(ROOT)
    figures = [
        f"{cpu:.1f}",
        f"{1000 * (cpu - dry) / shards:.1f}",
        f"{memory:.0f}",
        f"{dry:.1f}",
        f"{files / shards:.1f}",
    ]
    return [f"{shards:,}", *figures]


@click.command(help=__doc__)
@click.option("--shards", default=[2000], show_default=True, multiple=True)
def main(shards: tuple[int, ...]) -> None:
    print_table("Scheduling; Snakemake's own CPU", COLUMNS, [measure(number) for number in shards])


if __name__ == "__main__":
    main()
