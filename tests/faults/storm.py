"""A storm: the pipeline is started, struck, damaged and started again, then left in peace and judged."""

import random
import time
from pathlib import Path
from typing import Any

from scripted_server.fixture import ScriptedServer

from faults.damage import Damage
from faults.evidence import count_rows, durable_rows
from faults.instants import Strike, draw_strike
from faults.judgement import Aftermath
from faults.processes import batch_runner, kill_all, shards, snakemake, tagged
from faults.prompts import Dataset
from faults.report import Report
from faults.session import SETTINGS, Launch, Session
from faults.strikes import HARD, OUTAGES, SIGNALS, STOPS_ALL, STOPS_ALL_OF_RUNNER

CALM_STARTS = 4
FAULTS: list[dict[str, Any]] = [
    {"kind": "answer", "status": 500, "times": 1},
    {"kind": "answer", "status": 429, "times": 1, "headers": {"Retry-After": "1"}},
    {"kind": "reset", "times": 1},
    {"kind": "cut", "times": 1},
    {"kind": "silent", "seconds": 1, "times": 1},
    {"kind": "raw", "body": "no http", "times": 1},
    {"kind": "answer", "status": 400, "body": {"error": {"message": "no"}}, "times": 1},
]
WEATHER = [
    *(HARD, HARD, SIGNALS),
    [*OUTAGES, "restart_server", "start_again", "start_again"],
    [*HARD, *SIGNALS, *OUTAGES, "freeze_shard", "start_again"],
]


class Storm:
    """One storm from `seed` in the empty folder `work`; `on_small_disk` makes its run folder a tmpfs that fills up."""

    def __init__(self, seed: int, work: Path, *, on_small_disk: bool) -> None:
        self.rng = random.Random(seed)
        self.work, self.folder = work, work / "data" / "storm"
        self.on_small_disk = on_small_disk
        self.report = Report(seed)
        self.dataset = Dataset(work / "prompts.jsonl", self.rng)
        self.damage = Damage(self.folder, random.Random(seed))

    def run(self) -> Report:
        """Go through the whole storm and return what it found."""
        began = time.monotonic()
        latency, steps = self.rng.uniform(0.02, 0.08), self.rng.choice([0, 0, 1, 2])
        answers: dict[str, Any] = {"latency": latency, "jitter": 0.5, "steps": steps}
        rules = self._faulty_prompts() if self.rng.random() < 0.5 else []
        with ScriptedServer(rules, **answers) as server:
            self.session = Session(self.work, self.dataset, server, self.report)
            try:
                self._blow()
                server.control(script=answers, outage=None)
                self._calm()
                self._judge(server.base_url)
            finally:
                kill_all(self.session.tag)
                self.session.disk.unmount()
        self.report.seconds = time.monotonic() - began
        return self.report

    def _faulty_prompts(self) -> list[dict[str, Any]]:
        return [{"regex": f"^prompt {3 * number}\\b", "faults": [fault]} for number, fault in enumerate(FAULTS)]

    def _blow(self) -> None:
        if self.on_small_disk:
            self.session.disk.mount()
        for _ in range(self.rng.randint(2, 4)):
            kinds = ["fill_disk"] if self.on_small_disk and self.rng.random() < 0.7 else self.rng.choice(WEATHER)
            strikes = [draw_strike(self.rng, kinds) for _ in range(self.rng.choice([1, 1, 2]))]
            launch = self.rng.choice([snakemake, snakemake, batch_runner])
            self._start(launch, strikes)
            if self.session.last_struck in (STOPS_ALL | STOPS_ALL_OF_RUNNER if launch is batch_runner else STOPS_ALL):
                self.session.check_orderly()
            self._see_to_orphans(self.rng.choice(["wait", "go on", "kill"]))
            self._between_starts()

    def _start(self, launch: Launch, strikes: list[Strike]) -> int:
        cores = self.rng.randint(1, 3)
        settings = {"concurrency": self.rng.randint(2, 5), "batch_size": self.rng.choice([6, 10, 15, 30])}
        settings["max_consecutive_failures"] = self.rng.choice([3, 10])
        return self.session.start(launch, cores, settings, strikes, self.rng.random())

    def _see_to_orphans(self, what: str) -> None:
        """See to processes that outlive their start: wait for them, kill them, or start again beside them."""
        if not tagged(self.session.tag):
            return
        self.report.note(f"orphans: {what}")
        if what == "wait":
            self.session.wait_while(lambda: bool(tagged(self.session.tag)))
        elif what == "kill":
            self.session.kill_orphans()

    def _between_starts(self) -> None:
        if self.dataset.prompts <= count_rows(durable_rows(self.folder)):
            self.dataset.grow()
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            self.report.note(f"dataset: {self.dataset.change()}")
            self.report.changes += 1
        for _ in range(self.rng.choice([0, 0, 0, 1, 2])):
            if not tagged(self.session.tag):  # no promise covers damage to a file that is being written
                self.session.close_window()
                self.report.note(f"damage: {self.damage.strike()}")
                self.report.damages += 1

    def _calm(self) -> None:
        tag = self.session.tag
        self.session.wait_while(lambda: len(tagged(tag)) > len(shards(self.folder)))
        for _ in range(CALM_STARTS):
            if status := self._start(self.rng.choice([snakemake, batch_runner]), []):
                self.report.broken("an undisturbed start failed", f"status {status}")
            if self.dataset.prompts <= count_rows(durable_rows(self.folder)):
                break
        self.session.close_window()

    def _judge(self, base_url: str) -> None:
        aftermath = Aftermath(self.work, self.folder, self.dataset, self.report)
        aftermath.check_files(self.damage.made, torn_allowed=self.on_small_disk)
        aftermath.check_leftovers(self.session.tag)
        aftermath.check_results()
        settings = {**SETTINGS, "base_url": base_url, "run_name": "calm", "batch_size": 50}
        aftermath.compare(settings, self.session.tag)
