"""What was asked and what was answered, in memory and in a file that outlives the server."""

import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, BinaryIO

import orjson


class Counters:
    """Counts per prompt text and in total; with `log`, a JSON line for each event is appended there at once.

    An event is `asked` (a request came) or `answered` (its answer went out in full); `finished` counts the answers
    without tool calls. `authorizations` are the keys that came, by path.
    """

    def __init__(self, log: Path | None = None) -> None:
        self._file: BinaryIO | None = log.open("ab", buffering=0) if log else None
        self.in_flight = 0
        self.reset()

    def reset(self) -> None:
        self.calls: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.requests: list[dict[str, Any]] = []
        self.authorizations: defaultdict[str, set[str]] = defaultdict(set)
        self.max_in_flight = self.in_flight

    def asked(self, prompt: str, turn: int) -> int:
        """Count a request; returns its number among those of the prompt, from 1."""
        self.calls[prompt] += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        self._write("asked", prompt, turn, False)
        return self.calls[prompt]

    def answered(self, prompt: str, turn: int, is_final: bool) -> None:
        self.finished[prompt] += is_final
        self._write("answered", prompt, turn, is_final)

    def failed(self, kind: str) -> None:
        self.faults[kind] += 1

    def summary(self) -> dict[str, Any]:
        return {
            "calls": self.calls.total(),
            "finished": self.finished.total(),
            "faults": dict(self.faults),
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "authorizations": {path: sorted(headers) for path, headers in self.authorizations.items()},
            "prompts": {p: {"calls": n, "finished": self.finished.get(p, 0)} for p, n in self.calls.items()},
        }

    def _write(self, event: str, prompt: str, turn: int, is_final: bool) -> None:
        if self._file:
            line = {"time": time.time(), "event": event, "prompt": prompt, "turn": turn, "final": is_final}
            self._file.write(orjson.dumps(line) + b"\n")
