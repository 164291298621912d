"""Measures the result steps on a generated run: bytes of finished rows a second of CPU, and peak memory.

    python tests/benchmarks/bench_results.py --size 1GB

The ideal is 100 MB/s a core and 100 bytes of memory a row beyond what the step needs for a small run.
"""

import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import click
import orjson
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "tests"))

SIZES = {"20MB": 20_000_000, "100MB": 100_000_000, "1GB": 1_000_000_000, "2GB": 2_000_000_000}
SMALL = SIZES["20MB"]
STEPS = {"filter_trajectories": False, "compute_statistics": True, "merge_trajectories": True}
BATCH_ROWS = 250
TOOL_NAMES = [f"tool_{number:02}" for number in range(28)] + ["terminal", "read_file"]
MB_S, BYTES_A_ROW = 100, 100


class Run(NamedTuple):
    """A generated run: its folder, its dataset, the size of its batch files in bytes, its rows."""

    folder: Path
    dataset: Path
    size: int
    rows: int


class Usage(NamedTuple):
    """What a process took: seconds of CPU and of wall time, peak memory in bytes."""

    cpu: float
    wall: float
    memory: int


def generate(root: Path, size: int) -> Run:
    """Write a dataset and batch files of `size` bytes: rows of 8 to 20 KB, shuffled within each batch."""
    folder, dataset, chance = root / "run", root / "prompts.jsonl", random.Random(size)
    folder.mkdir(parents=True)
    settings = {"model": "m/1", "distribution": "default", "batch_size": BATCH_ROWS}
    (folder / "run.json").write_bytes(orjson.dumps({"run_name": "run", "settings": settings, "tools": TOOL_NAMES}))
    written = rows = batch = 0
    with dataset.open("wb") as prompts:
        while written < size:
            lines = [_line(rows + n, batch, chance, prompts.write) for n in range(BATCH_ROWS)]
            chance.shuffle(lines)
            written += (folder / f"batch_{batch}.jsonl").write_bytes(b"".join(lines))
            rows, batch = rows + BATCH_ROWS, batch + 1
    return Run(folder, dataset, written, rows)


def _line(index: int, batch: int, chance: random.Random, write_prompt: object) -> bytes:
    from results_files import trajectory
    from trajectile.rows import PromptRow, Turn
    from trajectile.run_folder.journal import ENCODER

    text = f"task {index}: " + "look through the files of this folder and say what they are for; " * 4
    write_prompt(orjson.dumps({"prompt": text, "label": index}) + b"\n")  # type: ignore[operator]
    key = sha256(orjson.dumps([text, "", ""])).hexdigest()
    prompt = PromptRow(index, key, 0, [Turn("human", text)], source=f'{{"label":{index}}}')
    reasoned = chance.random() > 0.05
    row = trajectory(
        prompt,
        batch=batch,
        calls=("terminal", "read_file") * chance.randint(2, 5),
        tools=TOOL_NAMES,
        reasoning='I should list the folder first, then read "each" file.\n' * 5 if reasoned else "",
        seconds=chance.random() * 60,
    )
    for turn in row.conversations:
        if turn.from_ == "tool":
            name = "\u2028über.txt" if chance.random() < 0.25 else "about.txt"
            turn.value = f"-rw-r--r-- 1 user user 4096 Jan  1 12:00 notes\t{name}\n" * chance.randint(10, 25)
    return ENCODER.encode(row) + b"\n"


def measure(arguments: list[str]) -> Usage:
    """Run a program to its end, its output thrown away."""
    start = time.perf_counter()
    with Path(os.devnull).open("wb") as null:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, *arguments],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, null.fileno(), 1)],
        )
    _, status, used = os.wait4(pid, 0)
    if status:
        raise click.ClickException(f"{arguments} ended with {os.waitstatus_to_exitcode(status)}")
    return Usage(used.ru_utime + used.ru_stime, time.perf_counter() - start, used.ru_maxrss * 1024)


def steps(run: Run) -> Iterator[tuple[str, Usage]]:
    for name, needs_dataset in STEPS.items():
        files = ["--run_folder", str(run.folder)]
        files += ["--dataset_file", str(run.dataset)] if needs_dataset else []
        yield name, measure([str(ROOT / "scripts" / f"{name}.py"), *files])


def bench_steps(size: int) -> Table:
    table = _table("step", "MB", "rows", "CPU s", "wall s", "MB/s CPU", "of ideal", "peak MB", "bytes/row", "of ideal")
    with tempfile.TemporaryDirectory() as temporary:
        small = generate(Path(temporary) / "small", SMALL)
        floor = dict(steps(small))
        run = generate(Path(temporary) / "large", size)
        for name, used in steps(run):
            rate = run.size / used.cpu / 1e6
            a_row = (used.memory - floor[name].memory) / (run.rows - small.rows)
            cells = (f"{run.size / 1e6:.0f}", run.rows, f"{used.cpu:.2f}", f"{used.wall:.2f}", f"{rate:.0f}")
            rest = (f"{rate / MB_S:.2f}", f"{used.memory / 1e6:.0f}", f"{a_row:.0f}", f"{a_row / BYTES_A_ROW:.2f}")
            table.add_row(name, *map(str, cells), *rest)
    return table


MATCH = """
import sys
from hashlib import sha256
from trajectile.results.matching import Matcher
count = int(sys.argv[1])
keys = lambda: (sha256(b"%d" % n).hexdigest() for n in range(count))
matcher = Matcher(keys())
for key in keys():
    matcher.add(key, 0)
matching = matcher.match()
assert (matching.row_of_prompt >= 0).all()
"""


def bench_matching(rows: int) -> Table:
    os.environ["PYTHONPATH"] = str(ROOT / "scripts")
    floor, used = measure(["-c", MATCH, "1000"]), measure(["-c", MATCH, str(rows)])
    table = _table("matching", "CPU s (keys made too)", "bytes/row", "of ideal")
    a_row = (used.memory - floor.memory) / rows
    table.add_row(f"{rows} rows", f"{used.cpu:.2f}", f"{a_row:.0f}", f"{a_row / BYTES_A_ROW:.2f}")
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None)
    for column in columns:
        table.add_column(column, justify="right")
    return table


@click.command()
@click.option("--size", type=click.Choice(list(SIZES)[1:]), default="100MB", show_default=True)
@click.option("--matching", default=1_000_000, show_default=True, help="Rows to match in memory, 0 for none.")
def main(size: str, matching: int) -> None:
    """Print what the result steps take."""
    console = Console(width=120)
    console.print(bench_steps(SIZES[size]))
    if matching:
        console.print(bench_matching(matching))


if __name__ == "__main__":
    main()
