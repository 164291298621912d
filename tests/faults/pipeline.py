"""The pipeline at the command line, in a folder of its own with a server of its own, for tests of single cases."""

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripted_server.fixture import ScriptedServer

from faults.evidence import count_rows, durable_rows, lines_of, prompt_of
from faults.processes import Started, kill_all, leftovers, snakemake

PATIENCE_S = 200


class Pipeline:
    """One run named "case", its dataset and its server."""

    def __init__(self, work: Path, server: ScriptedServer, **settings: Any) -> None:
        self.work, self.server = work, server
        self.folder = work / "data" / "case"
        self.dataset = work / "prompts.jsonl"
        self.tag = uuid.uuid4().hex
        self.settings: dict[str, object] = {
            "dataset_file": "prompts.jsonl",
            "run_name": "case",
            "model": "scripted",
            "distribution": "terminal_only",
            "base_url": server.base_url,
            "concurrency": 1,
            **settings,
        }

    def want(self, *prompts: str) -> None:
        """Write the dataset."""
        self.dataset.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts))

    def start(self, *more: str, cores: int = 2, **settings: Any) -> Started:
        command = snakemake(cores, {**self.settings, **settings}, *more)
        return Started(command, self.work, self.folder, self.tag, self.work / "log.txt")

    def run(self, *more: str, cores: int = 2, **settings: Any) -> int:
        """Start and wait for the end; return the exit status."""
        return self.start(*more, cores=cores, **settings).root.wait(PATIENCE_S)

    def kill_when(self, is_due: Callable[[], bool]) -> Started:
        """Start, and kill the whole tree at once when `is_due`."""
        started = self.start()
        self.wait(started, is_due)
        kill_all(self.tag, started.snakemake())
        started.root.wait()
        return started

    def wait(self, started: Started, is_due: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_due():
            assert not started.ended() and time.monotonic() < deadline, self.said()
            time.sleep(0.005)

    def rows(self) -> Counter[str]:
        """Return how many finished rows each prompt has in journals and batch files."""
        return count_rows(durable_rows(self.folder))

    def merged(self) -> list[str]:
        """Return the prompts of trajectories.jsonl in its order."""
        return [prompt_of(json.loads(line)) for line in lines_of(self.folder / "trajectories.jsonl")]

    def asked(self) -> dict[str, int]:
        """Return the calls by prompt since `forget_calls`."""
        return {prompt: counts["calls"] for prompt, counts in self.server.counters()["prompts"].items()}

    def forget_calls(self) -> None:
        self.server.control(reset_counters=True)

    def said(self) -> str:
        return (self.work / "log.txt").read_text()

    def statistics(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads((self.folder / "statistics.json").read_bytes())
        return read


@contextmanager
def pipeline(work: Path, *, latency: float = 0.0, steps: int = 0, **settings: Any) -> Iterator[Pipeline]:
    """Yield a pipeline; when done, no process of it may be left."""
    with ScriptedServer(latency=latency, steps=steps) as server:
        made = Pipeline(work, server, **settings)
        try:
            yield made
            assert leftovers(made.tag, made.folder) == []
        finally:
            kill_all(made.tag)
