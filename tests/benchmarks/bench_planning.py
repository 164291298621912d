"""Measures planning: 1,000,000 prompts cold and warm, a run with nothing to do, and dry runs with many owed shards.

    python tests/benchmarks/bench_planning.py --only noop

Cold is a dataset that no run has read, warm one whose run has started before (its keys are remembered).
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from measuring import ROOT, Used, print_table, repeated, run

MILLION = 1_000_000
COLUMNS = ["case", "prompts", "shards", "CPU s", "wall s", "MB", "bar s", "CPU/bar"]
COLD_BAR, WARM_BAR, NOOP_BAR, OWED_BAR = 10.0, 2.0, 3.0, 20.0
NOOP_CASES = [(100, 10), (1000, 10), (10_000, 10), (10_000, 100)]
OWED_CASES = [1000, 2000, 4000, 10_000]
SHARD_SIZE, LARGE_SHARD = 10, 500
PLAN = """
import sys, time, resource
from trajectile.planning.preparation import prepare_run
cpu, wall = time.process_time(), time.perf_counter()
run = prepare_run({settings!r})
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
print(cpu, wall, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, run.plan.digest)
"""
Row = list[str]


def settings(batch_size: int) -> dict[str, str | int]:
    """Return the configuration of all runs; no model is asked."""
    fixed = {"dataset_file": "prompts.jsonl", "run_name": "bench", "model": "scripted", "preflight": False}
    return {**fixed, "base_url": "http://127.0.0.1:9/v1", "batch_size": batch_size}


def snakemake(*options: str, batch_size: int) -> Used:
    config = [f"{name}={value}" for name, value in settings(batch_size).items()]
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--cores", "1"]
    return run([*command, *options, "--config", *config])


def plan() -> tuple[Used, str]:
    """Plan in a process of its own; return what the plan took, starting up left out, and its digest."""
    code = PLAN.format(settings=settings(LARGE_SHARD))
    run([sys.executable, "-c", code], output=Path("plan.txt"), env={"PYTHONPATH": str(ROOT / "scripts")})
    cpu, wall, memory, digest = Path("plan.txt").read_text().split()
    return Used(float(cpu), float(wall), int(memory)), digest


def split(digest: str) -> Used:
    files = ["--run_folder", "data/bench", "--dataset_file", "prompts.jsonl"]
    rest = ["--batch_size", str(LARGE_SHARD), "--digest", digest]
    return run([sys.executable, str(ROOT / "scripts" / "split_dataset.py"), *files, *rest])


def row(case: str, prompts: int, shards: int, used: Used, bar: float | None = None) -> Row:
    figures = [f"{used.cpu:.2f}", f"{used.wall:.2f}", f"{used.memory / 1e6:.0f}"]
    return [case, f"{prompts:,}", f"{shards:,}", *figures, str(bar or "-"), f"{used.cpu / bar:.2f}" if bar else "-"]


@contextmanager
def fresh_folder(prompts: int, finished_in: int = 0) -> Iterator[None]:
    """Work in a folder that holds a dataset, and with `finished_in` a run that has finished it in batches so large."""
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        generator = str(Path(__file__).with_name("planning_runs.py"))
        run([sys.executable, generator, str(prompts), str(finished_in)])
        yield
        os.chdir(ROOT)


def million(repeat: int) -> Iterator[Row]:
    shards = MILLION // LARGE_SHARD
    with fresh_folder(MILLION):
        _, digest = plan()
        yield row("plan, cold", MILLION, shards, repeated(lambda: plan()[0], repeat), COLD_BAR)
        yield row("snakemake -n, cold", MILLION, shards, snakemake("-n", batch_size=LARGE_SHARD))
        yield row("split_dataset", MILLION, shards, split(digest))
        yield row("plan, warm", MILLION, shards, repeated(lambda: plan()[0], repeat), WARM_BAR)
        yield row("snakemake -n, warm", MILLION, shards, snakemake("-n", batch_size=LARGE_SHARD))


def noop(repeat: int) -> Iterator[Row]:
    for batches, rows in NOOP_CASES:
        with fresh_folder(batches * rows, finished_in=rows):
            snakemake(batch_size=rows)
            used = repeated(lambda rows=rows: snakemake(batch_size=rows), repeat)
            yield row("snakemake, nothing to do", batches * rows, batches, used, NOOP_BAR)


def owed(repeat: int) -> Iterator[Row]:
    for shards in OWED_CASES:
        with fresh_folder(shards * SHARD_SIZE):
            used = repeated(lambda: snakemake("-n", batch_size=SHARD_SIZE), repeat)
            yield row("snakemake -n, all owed", shards * SHARD_SIZE, shards, used, OWED_BAR)


PARTS: dict[str, Callable[[int], Iterator[Row]]] = {"million": million, "noop": noop, "owed": owed}


@click.command()
@click.option("--only", type=click.Choice(list(PARTS)), multiple=True, help="Measure this part alone.")
@click.option("--repeat", default=1, show_default=True, help="Runs of each line; medians are printed.")
def main(only: tuple[str, ...], repeat: int) -> None:
    """Print what planning takes."""
    rows = [row for part in only or PARTS for row in PARTS[part](repeat)]
    print_table("Planning; CPU and wall of whole processes, except that a plan leaves starting up out", COLUMNS, rows)


if __name__ == "__main__":
    main()
