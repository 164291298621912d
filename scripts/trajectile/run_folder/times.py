"""When a shard was being worked on, and what came of it so far: kept through kills, for statistics and for watchers."""

import time
from pathlib import Path

import msgspec

from trajectile.rows import Usage
from trajectile.run_folder.paths import replace_file


class Times(msgspec.Struct):
    """Sessions of a shard as [start, last heartbeat] in epoch seconds, and its state at the last one.

    `running` prompts are in flight, `waiting` of them for the server; `discarded` rows will not pass the filter;
    `usage` is what all attempts took, failed ones too. `fruitless` attempts in a row, the running one among them,
    finished no prompt; they are counted for each start of the run, which `start` names.
    """

    sessions: list[tuple[float, float]] = []
    running: int = 0
    waiting: int = 0
    discarded: int = 0
    usage: Usage = msgspec.field(default_factory=Usage)
    start: str = ""
    fruitless: int = 0

    def fruitless_in(self, start: str) -> int:
        """Return how many attempts of a start of the run finished nothing; a shard run by hand has no start."""
        return self.fruitless if start and start == self.start else 0


def read_times(path: Path) -> Times:
    """Return what is known so far, nothing where the file is absent or damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Times)
    except (FileNotFoundError, msgspec.DecodeError):
        return Times()


class Clock:
    """Keeps the time of one attempt at a shard, made in a start of the run, and its state."""

    def __init__(self, path: Path, start: str = "") -> None:
        self.path = path
        before = read_times(path)
        self._earlier = before.sessions
        self._start = time.time()
        fruitless = before.fruitless_in(start) + 1
        self.state = Times(discarded=before.discarded, usage=before.usage, start=start, fruitless=fruitless)
        self.beat()

    def beat(self) -> None:
        """Write the state down, with the time."""
        self.state.sessions = [*self._earlier, (self._start, time.time())]
        replace_file(self.path, msgspec.json.encode(self.state))
