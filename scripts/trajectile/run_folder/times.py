"""When a shard was being worked on, and what came of it so far: kept through kills, for statistics and for watchers."""

import time
from pathlib import Path

import msgspec

from trajectile.rows import Usage
from trajectile.run_folder.paths import replace_file


class Times(msgspec.Struct):
    """Sessions of a shard as [start, last heartbeat] in epoch seconds, and its state at the last one.

    `running` prompts are in flight, `waiting` of them for the server; `discarded` rows will not pass the filter;
    `usage` is what all attempts took, failed ones too.
    """

    sessions: list[tuple[float, float]] = []
    running: int = 0
    waiting: int = 0
    discarded: int = 0
    usage: Usage = msgspec.field(default_factory=Usage)


def read_times(path: Path) -> Times:
    """Return what is known so far, nothing where the file is absent or damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Times)
    except (FileNotFoundError, msgspec.DecodeError):
        return Times()


class Clock:
    """Keeps the time of one attempt at a shard, and its state."""

    def __init__(self, path: Path) -> None:
        self.path = path
        before = read_times(path)
        self._earlier = before.sessions
        self._start = time.time()
        self.state = Times(discarded=before.discarded, usage=before.usage)
        self.beat()

    def beat(self) -> None:
        """Write the state down, with the time."""
        self.state.sessions = [*self._earlier, (self._start, time.time())]
        replace_file(self.path, msgspec.json.encode(self.state))
