"""When a shard was being worked on: start and last heartbeat of each attempt, kept through kills."""

import time
from pathlib import Path

import msgspec

from trajectile.run_folder import replace_file


class Times(msgspec.Struct):
    """Sessions of a shard as [start, last heartbeat] in epoch seconds."""

    sessions: list[tuple[float, float]] = []


def read_times(path: Path) -> Times:
    """Return the sessions so far, none where the file is absent or damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Times)
    except (FileNotFoundError, msgspec.DecodeError):
        return Times()


class Clock:
    """Keeps the time of one attempt at a shard."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._earlier = read_times(path).sessions
        self._start = time.time()
        self.beat()

    def beat(self) -> None:
        times = Times([*self._earlier, (self._start, time.time())])
        replace_file(self.path, msgspec.json.encode(times))
