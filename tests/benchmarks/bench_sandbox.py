"""Measures each kind of sandbox that this machine has, and the bare engine beside it.

    python tests/benchmarks/bench_sandbox.py --repeat 20 --only docker

A prompt's sandbox is started, runs some commands and is closed; the bare engine makes, starts and removes a container,
and runs the same commands in it, in turns with ours.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click
from measuring import ROOT, print_table

sys.path.insert(0, str(ROOT / "tests"))

from sandbox_contract import engines
from sandbox_contract.subjects import KEY, SUBJECTS, Subject

COMMANDS = 5
BAR_S = 0.5
COLUMNS = ["sandbox", "start s", "command s", "close s", "a prompt s", "engine s", "ratio", "bar", "exec s", "ratio"]


class Times(NamedTuple):
    """Seconds of wall time: a sandbox or container made, one command in it, and removed."""

    start: float
    command: float
    close: float

    @property
    def prompt(self) -> float:
        return self.start + self.close


async def ours(subject: Subject) -> Times:
    from trajectile.rows import PromptRow

    sandbox = subject.shared.open(PromptRow(0, KEY, 0, []))
    began = time.perf_counter()
    await sandbox.start()
    started = time.perf_counter()
    for _ in range(COMMANDS):
        assert (await sandbox.exec("echo on", timeout_s=60)).output == b"on\n"
    ran = time.perf_counter()
    await sandbox.close()
    return Times(started - began, (ran - started) / COMMANDS, time.perf_counter() - ran)


def bare(subject: Subject) -> Times:
    """What the engine takes for a container that does nothing, asked in the plainest way."""
    client = engines.client(subject.engine).api
    config = client.create_host_config(network_mode="none")
    began = time.perf_counter()
    container = client.create_container(subject.images[0], ["sleep", "600"], host_config=config)["Id"]
    client.start(container)
    started = time.perf_counter()
    for _ in range(COMMANDS):
        assert client.exec_start(client.exec_create(container, ["sh", "-c", "echo on"])["Id"]) == b"on\n"
    ran = time.perf_counter()
    client.remove_container(container, v=True, force=True)
    return Times(started - began, (ran - started) / COMMANDS, time.perf_counter() - ran)


def medians(times: list[Times]) -> Times:
    return Times(*(statistics.median(column) for column in zip(*times, strict=True)))


def measure(subject: Subject, repeat: int) -> list[str]:
    mine, floor = [], []
    for _ in range(repeat + 1):
        mine.append(asyncio.run(ours(subject)))
        if subject.name in ("docker", "podman"):
            floor.append(bare(subject))
    result = medians(mine[1:])
    row = [subject.name, *(f"{value:.3f}" for value in (*result, result.prompt))]
    if not floor:
        return [*row, "", "", "", "", ""]
    least = medians(floor[1:])
    ratios = f"{result.prompt / least.prompt:.2f}", f"{result.command / least.command:.2f}"
    return [*row, f"{least.prompt:.3f}", ratios[0], str(BAR_S), f"{least.command:.3f}", ratios[1]]


@contextmanager
def subjects(only: tuple[str, ...]) -> Iterator[list[Subject]]:
    with tempfile.TemporaryDirectory(prefix="trajectile-bench-") as folder:
        os.environ["TRAJECTILE_CACHE"] = f"{folder}/cache"
        found = []
        for name in only or SUBJECTS:
            problem, make = SUBJECTS[name]()
            if problem:
                click.echo(f"left out: {problem}", err=True)
            else:
                found.append(opened(make, Path(folder) / name))
        yield found


def opened(make: Callable[[Path], Subject], root: Path) -> Subject:
    """A subject whose prompts share a backend, as those of a shard do."""
    subject = make(root)
    if subject.engine:
        os.environ["DOCKER_HOST"] = subject.engine
    subject.shared = subject.backend()
    return subject


@click.command(help=__doc__)
@click.option("--repeat", default=10, show_default=True, help="Prompts of each kind; medians are shown.")
@click.option("--only", multiple=True, type=click.Choice(list(SUBJECTS)), help="Kinds of sandboxes.")
def main(repeat: int, only: tuple[str, ...]) -> None:
    with subjects(only) as found:
        print_table("A prompt's sandbox, medians", COLUMNS, [measure(subject, repeat) for subject in found])


if __name__ == "__main__":
    main()
