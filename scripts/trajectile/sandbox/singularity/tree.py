"""The processes of a container, seen and killed from the host, which is out of their reach."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from trajectile.processes import start_time

RETRY_S = 0.005


class Process(NamedTuple):
    """A process that cannot be mistaken for a later one under the same number."""

    pid: int
    started: str


class Tree:
    """What runs below the host's process `top`, the program that was started to run the container."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._first = 0

    def locate(self) -> Process:
        """The container's first process, from which all others descend. ProcessLookupError where there is none."""
        for pid in _below(self._top):
            numbers = _numbers(pid)
            if len(numbers) > 1 and numbers[-1] == 1:
                self._first = pid
                return _identify(pid)
        raise ProcessLookupError("the container has no process")

    def marked(self, mark: int) -> set[int]:
        """The living processes that bear `mark`, and those below them."""
        found: set[int] = set()
        for pid in _below(self._first):
            if pid not in found and _mark(pid) == mark:
                found |= {pid, *_below(pid)}
        return {pid for pid in found if not _is_dead(pid)}

    async def end(self, mark: int) -> None:
        """Kill all that bears `mark`. Stopped first, killed then: what forks faster than it dies would get away.

        What loses its parent meanwhile may be missed once, not twice.
        """
        stopped: set[int] = set()
        looks = 0
        while looks < 2:
            found = self.marked(mark)
            looks = 0 if found else looks + 1
            _send(signal.SIGKILL if found == stopped else signal.SIGSTOP, found)
            stopped = found
            await asyncio.sleep(RETRY_S)


def kill(process: Process) -> None:
    if _identify(process.pid) == process:
        _send(signal.SIGKILL, {process.pid})


def _send(number: int, pids: set[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _identify(pid: int) -> Process:
    return Process(pid, start_time(pid))


def _is_dead(pid: int) -> bool:
    """Gone, or a zombie without threads."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[0] in b"ZX" and int(fields[17]) < 2
    return True


def _below(pid: int) -> Iterator[int]:
    todo = [*_children(pid)]
    while todo:
        yield (child := todo.pop())
        todo += _children(child)


def _children(pid: int) -> Iterator[int]:
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            yield from map(int, file.read_bytes().split())


def _mark(pid: int) -> int | None:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/oom_score_adj").read_bytes())
    return None


def _numbers(pid: int) -> list[int]:
    """The numbers of a process, from the host's to that of its innermost namespace."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return [int(number) for number in line.split()[1:]]
    return []
