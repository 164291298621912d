"""Runs 40 prompts at once in each kind of sandbox, over and over, and counts what is left behind.

    python tests/repeat_sandboxes.py --repeat 20
    python tests/repeat_sandboxes.py --repeat 20 --only podman --contract

Private engines are started by the scripts in --lab where there are any (as root, on Debian), and stopped at the end;
otherwise those are used that DOCKER_HOST, TRAJECTILE_TEST_PODMAN and PATH lead to. Status 1 where anything was left.
"""

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]

from sandbox_contract import engines as test_engines  # noqa: E402
from sandbox_contract.subjects import KEY, SUBJECTS, Subject, gone, running  # noqa: E402
from trajectile.rows import PromptRow  # noqa: E402

AT_ONCE = 40
KINDS = tuple(SUBJECTS)
COLUMNS = ("sandbox", "rounds", "prompts done", "round s", "containers", "folders", "processes", "mounts and the like")
MARK = f"77{os.getpid()}"


class Round(NamedTuple):
    """One time 40 prompts: how many got through, the wall time, and what is left of them."""

    done: int
    wall_s: float
    containers: int
    folders: int
    processes: int
    others: int


async def prompt(subject: Subject, number: int) -> bool:
    """Two commands, the first of which leaves a process behind."""
    sandbox = subject.shared.open(PromptRow(number, KEY, number, []))
    try:
        await sandbox.start()
        await sandbox.exec(f"setsid sleep {MARK} & export N={number}", timeout_s=300)
        return (await sandbox.exec("echo $N", timeout_s=300)).output == f"{number}\n".encode()
    finally:
        await sandbox.close()


async def prompts(subject: Subject) -> int:
    outcomes = await asyncio.gather(*(prompt(subject, number) for number in range(AT_ONCE)), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            click.echo(f"{subject.name}: {outcome!r}", err=True)
    return sum(outcome is True for outcome in outcomes)


def one_round(subject: Subject) -> Round:
    before, began = others(subject), time.perf_counter()
    done = asyncio.run(prompts(subject))
    wall = time.perf_counter() - began
    gone(MARK), gone(str(subject.root))
    processes = len({*running(MARK), *running(str(subject.root))})
    folders = len([*subject.folders()])
    return Round(done, wall, len(subject.containers()), folders, processes, len(others(subject) - before))


def others(subject: Subject) -> set[str]:
    """Volumes and networks of an engine, and mounts of containers."""
    mounts = {line for line in Path("/proc/mounts").read_text().splitlines() if f"{subject.root.parent}/" in line}
    return subject.engine_wide() | mounts


def row_of(name: str, rounds: list[Round]) -> list[str]:
    done, _, *left = map(sum, zip(*rounds, strict=True))
    walls = [each.wall_s for each in rounds]
    wall = f"{statistics.median(walls):.1f} ({min(walls):.1f} to {max(walls):.1f})"
    return [name, str(len(rounds)), f"{done} of {AT_ONCE * len(rounds)}", wall, *map(str, left)]


def is_clean(rounds: list[Round]) -> bool:
    return all(each.done == AT_ONCE and not any(each[2:]) for each in rounds)


def repeat(name: str, folder: Path, times: int) -> list[Round]:
    problem, make = SUBJECTS[name]()
    if problem:
        click.echo(f"left out: {name}: {problem}", err=True)
        return []
    subject = make(folder / name)
    if subject.engine:
        os.environ["DOCKER_HOST"] = subject.engine
    subject.shared = subject.backend()
    rounds = []
    for number in range(times):
        rounds.append(one_round(subject))
        click.echo(f"{name} {number + 1}: {rounds[-1]}", err=True)
    subject.shared.close()
    return rounds


@contextmanager
def service(lab: Path, script: str, folder: Path, *options: str) -> Iterator[None]:
    """An engine of our own; where it does not start, its script has said why."""
    try:
        subprocess.run(["bash", str(lab / script), "up", str(folder), *options], check=False)
        yield
    finally:
        subprocess.run(["bash", str(lab / script), "down", str(folder)], check=False, capture_output=True)


@contextmanager
def engines(lab: Path, folder: Path, kinds: tuple[str, ...]) -> Iterator[None]:
    """Start what is not there yet of the engines that `kinds` need."""
    with ExitStack() as started:
        if "docker" in kinds and "DOCKER_HOST" not in os.environ:
            started.enter_context(service(lab, "docker_engine.sh", folder / "docker"))
            os.environ["DOCKER_HOST"] = f"unix://{folder}/docker/docker.sock"
        if "podman" in kinds and "TRAJECTILE_TEST_PODMAN" not in os.environ:
            allow_registry(folder / "registries.conf")
            started.enter_context(service(lab, "podman_service.sh", folder / "podman"))
            os.environ["TRAJECTILE_TEST_PODMAN"] = f"unix://{folder}/podman/podman.sock"
        if "singularity" in kinds and SUBJECTS["singularity"]()[0]:
            get = ["bash", str(lab / "get_apptainer.sh"), str(folder / "apptainer")]
            subprocess.run(get, check=False, stdout=subprocess.DEVNULL)
            os.environ["PATH"] = f"{folder}/apptainer/bin:{os.environ['PATH']}"
        yield


def allow_registry(config: Path) -> None:
    """Let podman pull from a registry of the tests, which speaks plain HTTP, as Docker does on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config.write_text(f'[[registry]]\nlocation = "127.0.0.1:{port}"\ninsecure = true\n')
    os.environ |= {"CONTAINERS_REGISTRIES_CONF": str(config), "TRAJECTILE_TEST_REGISTRY_PORT": str(port)}


def contract(kinds: tuple[str, ...]) -> int:
    """Run the tests that every kind of sandbox must pass."""
    words = " or ".join(kinds)
    command = [sys.executable, "-m", "pytest", "-q", "tests/sandbox_contract", "tests/test_images.py", "-k", words]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


@click.command(help=__doc__)
@click.option("--repeat", "times", default=1, show_default=True, help="How often 40 prompts run at once.")
@click.option("--only", multiple=True, type=click.Choice(KINDS), help="Kinds of sandboxes; all where none is named.")
@click.option("--contract", "tested", is_flag=True, help="Run the contract tests of these kinds first.")
@click.option("--lab", type=click.Path(path_type=Path), default=ROOT / ".." / "shared" / "lab", help="Engine scripts.")
def main(times: int, only: tuple[str, ...], tested: bool, lab: Path) -> None:
    kinds = only or KINDS
    with tempfile.TemporaryDirectory(prefix="trajectile-repeat-") as name, ExitStack() as started:
        folder = Path(name)
        os.environ["TRAJECTILE_CACHE"] = f"{folder}/cache"
        if lab.is_dir():
            started.enter_context(engines(lab, folder, kinds))
        failed = contract(kinds) if tested else 0
        found = {kind: rounds for kind in kinds if (rounds := repeat(kind, folder / "runs", times))}
        test_engines.forget_all()
        table = Table(*COLUMNS, title=f"{AT_ONCE} prompts at once, and what is left of them")
        for kind, rounds in found.items():
            table.add_row(*row_of(kind, rounds))
        Console(width=140).print(table)
    sys.exit(bool(failed) or not all(map(is_clean, found.values())))


if __name__ == "__main__":
    main()
