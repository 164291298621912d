"""How many prompts a minute a run finishes."""

import time
from collections import deque
from collections.abc import Iterable

from trajectile.results.sessions import union_length
from trajectile.run_folder.times import Times

WINDOW_S = 300.0
SETTLED_S = 20.0


class Pace:
    """The rate of the last minutes, while it is being watched; before, that of the run's whole working time."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def rate(self, done: int, states: Iterable[Times]) -> float:
        """Return prompts a minute, 0 where nothing is known; `done` is the count now."""
        now = time.monotonic()
        self._seen.append((now, done))
        while now - self._seen[0][0] > WINDOW_S:
            self._seen.popleft()
        since, before = self._seen[0]
        if now - since >= SETTLED_S and done > before:
            return (done - before) / (now - since) * 60
        worked = union_length(session for state in states for session in state.sessions)
        return done / worked * 60 if worked else 0.0
