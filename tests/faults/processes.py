"""Starting the pipeline in a session of its own, and finding all that came of it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
SNAKEFILE = ROOT / "Snakefile"
RUNNER = ROOT / "scripts" / "batch_runner.py"
TAG = "FAULT_MACHINE_STORM"
GONE = (psutil.NoSuchProcess, psutil.AccessDenied, ProcessLookupError)


def snakemake(cores: int, settings: dict[str, object], *more: str) -> list[str]:
    pairs = [f"{name}={value}" for name, value in settings.items()]
    command = [sys.executable, "-m", "snakemake", "-s", str(SNAKEFILE), "--cores", str(cores)]
    return [*command, *more, "--config", *pairs]


def batch_runner(cores: int, settings: dict[str, object], *more: str) -> list[str]:
    options = [f"--{name}={value}" for name, value in settings.items()]
    return [sys.executable, str(RUNNER), *options, "--num_workers", str(cores), "--resume", *more]


class Started:
    """One start of the pipeline. Its descendants inherit `tag` in their environment, which finds orphans too."""

    def __init__(self, command: list[str], work: Path, run_folder: Path, tag: str, log: Path) -> None:
        self.run_folder, self.tag = run_folder, tag
        self._again = (command, work, run_folder, tag, log)
        self._through_runner = str(RUNNER) in command
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        with log.open("ab") as out:
            self.root = subprocess.Popen(
                command,
                cwd=work,
                env={**os.environ, TAG: tag, "PATH": path, "TRAJECTILE_API_KEY": "none"},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def again(self) -> "Started":
        """Start the same command once more."""
        return Started(*self._again)

    def ended(self) -> bool:
        return self.root.poll() is not None

    def snakemake(self) -> psutil.Process | None:
        """Return the Snakemake process itself, None once (or before) there is one."""
        with suppress(*GONE):
            root = psutil.Process(self.root.pid)
            return next(iter(root.children()), None) if self._through_runner else root
        return None


def shards(run_folder: Path) -> list[psutil.Process]:
    """Return the living processes that the shards' leases name."""
    return [process for path in sorted(run_folder.glob("journal/*.lease")) for process in _holder(path)]


def _holder(lease: Path) -> Iterator[psutil.Process]:
    with suppress(FileNotFoundError, ValueError, KeyError, TypeError, *GONE):
        owner = json.loads(lease.read_bytes())
        process = psutil.Process(owner["pid"])
        if process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - owner["started"]) < 2:
            yield process


def sandboxes(run_folder: Path) -> list[psutil.Process]:
    """Return the processes below the shards."""
    found = []
    for shard in shards(run_folder):
        with suppress(*GONE):
            found += shard.children(recursive=True)
    return found


def tagged(tag: str) -> list[psutil.Process]:
    """Return all living processes of a storm."""
    return [process for process in psutil.process_iter() if _has_tag(process, tag)]


def _has_tag(process: psutil.Process, tag: str) -> bool:
    with suppress(*GONE):
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(TAG) == tag
    return False


def kill_all(tag: str, first: psutil.Process | None = None) -> int:
    """SIGKILL a storm's processes, `first` before all, until none is left; return how many there were."""
    killed = _kill([first] if first else [])
    while processes := tagged(tag):
        killed += _kill(processes)
        time.sleep(0.02)
    return killed


def _kill(processes: list[psutil.Process]) -> int:
    for process in processes:
        with suppress(*GONE):
            process.kill()
    return len(processes)


def leftovers(tag: str, folder: Path, patience_s: float = 10) -> list[str]:
    """Return the command lines of processes that a storm left behind, after waiting for them to end."""
    deadline = time.monotonic() + patience_s
    while (left := _in_folder(folder) | set(tagged(tag))) and time.monotonic() < deadline:
        time.sleep(0.1)
    return [line for process in left for line in _command_line(process)]


def _in_folder(folder: Path) -> set[psutil.Process]:
    return {p for p in psutil.process_iter() if any(str(folder) in line for line in _command_line(p))}


def _command_line(process: psutil.Process) -> Iterator[str]:
    with suppress(*GONE):
        if process.status() != psutil.STATUS_ZOMBIE:
            yield f"{process.pid}: {' '.join(process.cmdline())}"
