"""A SLURM cluster as its commands show it, and the virtual one's nodes and controller to be killed and revived."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import NamedTuple, TypeVar

import psutil

PYTHON = os.environ.get("TRAJECTILE_TEST_SLURM_PYTHON", sys.executable)
BASE = os.environ.get("SLURM_LAB_BASE", "")
PATIENCE_S = 60
Result = TypeVar("Result")


class Job(NamedTuple):
    """A job of a run: SLURM's number and state, the node that it is on, and what the plugin says of it."""

    id: str
    state: str
    node: str
    comment: str


def problem() -> str:
    """Why nothing can be run on a cluster here, "" where it can."""
    if which("sinfo") is None:
        return "SLURM is not installed: there is no sinfo"
    up = subprocess.run(["sinfo", "--noheader", "--format", "%D"], capture_output=True, text=True)
    if up.returncode or not up.stdout.strip():
        return f"no SLURM controller answers: {up.stderr.strip()}"
    if subprocess.run([PYTHON, "-c", "import snakemake_executor_plugin_slurm"], capture_output=True).returncode:
        return f"{PYTHON} lacks snakemake-executor-plugin-slurm; TRAJECTILE_TEST_SLURM_PYTHON names one that has it"
    return ""


def virtual_problem() -> str:
    """Why the daemons of this cluster cannot be killed, "" where they can."""
    if not BASE:
        return "SLURM_LAB_BASE does not name the folder of a virtual cluster, whose daemons could be killed"
    return ""


def jobs(work: Path) -> list[Job]:
    """Return the jobs that wait or run with `work` as their folder."""
    lines = ask("squeue", "--noheader", "--format", "%i|%T|%N|%k|%Z").splitlines()
    return [Job(*line.split("|")[:4]) for line in lines if Path(line.split("|")[4]) == work]


def running(work: Path) -> list[Job]:
    return [job for job in jobs(work) if job.state == "RUNNING"]


def ask(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Node:
    """A node of the virtual cluster."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._pid = Path(BASE) / "pids" / f"slurmd-{name}"

    def kill(self) -> None:
        """Kill all that runs on the node, its daemon first, as a loss of power would, and have it noticed at once."""
        daemon = psutil.Process(int(self._pid.read_text()))
        assert "slurmd" in daemon.name()
        victims = [daemon, *self._steps(), *self._jobs()]
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                victim.kill()
        psutil.wait_procs(victims, timeout=PATIENCE_S)
        ask("scontrol", "update", f"nodename={self.name}", "state=down", "reason=killed")

    def revive(self) -> None:
        daemon = _daemon("slurmd", "-D", "-N", self.name)
        self._pid.write_text(f"{daemon.pid}\n")
        ask("scontrol", "update", f"nodename={self.name}", "state=resume")
        wait_for(lambda: set(self._states()) & {"idle", "mix", "alloc"}, what=f"{self.name} is up")

    def _states(self) -> list[str]:
        """Return the node's state, with a star where it does not answer, once for each partition."""
        return ask("sinfo", "--noheader", "--nodes", self.name, "--format", "%t").split()

    def _jobs(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if self._is_here(process)]

    def _steps(self) -> list[psutil.Process]:
        """SLURM's keepers of the jobs' processes."""
        found = set()
        for process in self._jobs():
            with suppress(psutil.NoSuchProcess):
                parent = process.parent()
                found |= {parent} if parent and parent.name().startswith("slurmstepd") else set()
        return list(found)

    def _is_here(self, process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            return process.environ().get("SLURMD_NODENAME") == self.name
        return False


def restart_controller(down_s: float) -> None:
    """Kill the controller and start it again after a while."""
    pid = Path(BASE) / "pids" / "slurmctld"
    controller = psutil.Process(int(pid.read_text()))
    assert controller.name() == "slurmctld"
    controller.kill()
    controller.wait(PATIENCE_S)
    time.sleep(down_s)
    pid.write_text(f"{_daemon('slurmctld', '-D').pid}\n")
    wait_for(lambda: subprocess.run(["scontrol", "ping"], capture_output=True).returncode == 0, what="the controller")


def _daemon(*command: str) -> "subprocess.Popen[bytes]":
    silent = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent, start_new_session=True)


def wait_for(condition: Callable[[], Result], seconds: float = PATIENCE_S, what: str = "") -> Result:
    """Wait until a function returns something true, and return that."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, f"not within {seconds} s: {what or condition}"
        time.sleep(0.1)
    return result
