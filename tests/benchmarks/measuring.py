"""What the benchmarks share: a measured process, the median of several, a table."""

import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "tests"))


class Used(NamedTuple):
    """What a process and its finished children took: seconds of CPU and of wall time, its peak memory in bytes."""

    cpu: float
    wall: float
    memory: int


def run(command: list[str], output: Path | None = None, env: dict[str, str] | None = None) -> Used:
    """Run a program to its end, its standard output into a file or away.

    Linux counts the memory of the process that starts another one as if it were the other's: keep the caller small.
    """
    start = time.perf_counter()
    with ExitStack() as stack:
        files = [stack.enter_context(Path(name).open("wb")) for name in (output or os.devnull, os.devnull)]
        actions = [(os.POSIX_SPAWN_DUP2, file.fileno(), number) for number, file in enumerate(files, 1)]
        pid = os.posix_spawnp(command[0], command, os.environ | (env or {}), file_actions=actions)
    _, status, used = os.wait4(pid, 0)
    if status:
        raise click.ClickException(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return Used(used.ru_utime + used.ru_stime, time.perf_counter() - start, used.ru_maxrss * 1024)


def repeated(measure: Callable[[], Used], repeat: int) -> Used:
    """Return the median of each figure over some repetitions."""
    cpu, wall, memory = medians(measure, repeat)
    return Used(cpu, wall, int(memory))


def medians(measure: Callable[[], tuple[float, ...]], repeat: int) -> list[float]:
    """Return the median of each figure over some repetitions."""
    return [statistics.median(values) for values in zip(*(measure() for _ in range(repeat)), strict=True)]


def files_below(*folders: Path) -> int:
    return sum(len(names) for folder in folders for _, _, names in os.walk(folder))


def print_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    table = Table(box=None, title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    Console(width=150).print(table)
