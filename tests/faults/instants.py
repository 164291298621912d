"""When a strike comes: after a time, after some rows, or when a file appears."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from faults.evidence import lines_of
from faults.strikes import POLL_S, STRIKES, Scene

MARKS = ("shards/manifest_*", "run.json", "batch_*.jsonl", "discarded.jsonl", "statistics.json", "trajectories.jsonl")


class Strike(NamedTuple):
    """A kind of strike and its instant: `delay_s` after `mark` ("start", "rows" for `rows` more rows, or a file)."""

    kind: str
    mark: str
    rows: int
    delay_s: float

    def __str__(self) -> str:
        what = f"{self.rows} rows" if self.mark == "rows" else self.mark
        return f"{self.kind} {self.delay_s:.2f} s after {what}"


def draw_strike(rng: random.Random, kinds: list[str]) -> Strike:
    mark = rng.choices(["start", "rows", rng.choice(MARKS)], [3, 6, 2])[0]
    delay = rng.uniform(0.1, 6) if mark == "start" else rng.choice([0, rng.uniform(0, 0.5)])
    return Strike(rng.choice(kinds), mark, rng.randint(1, 8), delay)


def strike_when_due(strike: Strike, scene: Scene) -> bool:
    """Wait for the strike's instant and strike; False where the run ended before it, or nothing was there to hit."""
    is_due = _watch(strike, scene)
    while not is_due():
        if scene.started.ended():
            return False
        time.sleep(POLL_S)
    time.sleep(strike.delay_s)
    return not scene.started.ended() and STRIKES[strike.kind](scene)


def _watch(strike: Strike, scene: Scene) -> Callable[[], bool]:
    folder = scene.started.run_folder
    if strike.mark == "start":
        return lambda: True
    if strike.mark == "rows":
        wanted = _journal_lines(folder) + strike.rows
        return lambda: _journal_lines(folder) >= wanted
    began = time.time() - 0.01
    return lambda: any(_modified(path) > began for path in folder.glob(strike.mark))


def _modified(path: Path) -> float:
    with suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0


def _journal_lines(folder: Path) -> int:
    return sum(len(lines_of(path)) for path in folder.glob("journal/shard_*.jsonl"))
