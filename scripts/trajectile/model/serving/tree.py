"""The process tree of a server: nothing that it started outlives it."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GRACE_S = 10.0
POLL_S = 0.05


def _prctl(option: int, argument: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, argument, 0, 0, 0)


def guarded(work: Callable[[], None]) -> None:
    """Do the work in a child, and end all that is left below it, however it ended.

    Each of the two watches the other: kill -9 of either ends the whole tree.
    """
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    guard = os.getpid()
    worker = os.fork()
    if worker == 0:
        _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == guard:
            work()
        sys.exit()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: os.kill(worker, number))
    os.waitpid(worker, 0)
    stop_tree(grace_s=0)


def start(script: str, output: Path, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Start a bash script in a session of its own, whose output is appended to a file."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    with output.open("ab") as file:
        return subprocess.Popen(
            ["bash", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
        )


def stop_tree(grace_s: float = GRACE_S) -> None:
    """End all processes below this one: SIGTERM, and SIGKILL for those that live on after `grace_s` seconds."""
    deadline = time.monotonic() + grace_s
    told: set[psutil.Process] = set()
    while below := _living_below():
        late = time.monotonic() >= deadline
        for process in below if late else set(below) - told:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL if late else signal.SIGTERM)
        told |= set(below)
        time.sleep(POLL_S)


def _living_below() -> list[psutil.Process]:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return [process for process in psutil.Process().children(recursive=True) if _lives(process)]


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
