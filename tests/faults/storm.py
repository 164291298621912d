"""A storm: the pipeline is started, struck, damaged and started again, then left in peace and judged."""

import random
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scripted_server.fixture import ScriptedServer

from faults.damage import Damage
from faults.disk import Disk
from faults.evidence import count_rows, durable_rows
from faults.judgement import Aftermath, results_problem, unattempted
from faults.processes import Started, batch_runner, kill_all, shards, snakemake, tagged
from faults.prompts import Dataset
from faults.report import Report
from faults.strikes import GENTLE, HARD, OUTAGES, SIGNALS, Scene, Strike, draw_strike, strike_when_due
from faults.window import Window

PATIENCE_S = 120
CALM_STARTS = 4
SETTINGS: dict[str, object] = {
    "dataset_file": "prompts.jsonl",
    "run_name": "storm",
    "model": "scripted",
    "distribution": "terminal_only",
    "max_retries": 2,
    "request_timeout": 6,
}
FAULTS: list[dict[str, Any]] = [
    {"kind": "answer", "status": 500, "times": 1},
    {"kind": "answer", "status": 429, "times": 1, "headers": {"Retry-After": "1"}},
    {"kind": "reset", "times": 1},
    {"kind": "cut", "times": 1},
    {"kind": "silent", "seconds": 1, "times": 1},
    {"kind": "raw", "body": "no http", "times": 1},
    {"kind": "answer", "status": 400, "body": {"error": {"message": "no"}}, "times": 1},
]
WEATHER = [HARD, HARD, SIGNALS, [*OUTAGES, "restart_server"], [*HARD, *SIGNALS, *OUTAGES, "freeze_shard"]]

Launch = Callable[..., list[str]]


class Storm:
    """One storm from `seed` in the empty folder `work`; `on_small_disk` makes its run folder a tmpfs that fills up."""

    def __init__(self, seed: int, work: Path, *, on_small_disk: bool) -> None:
        self.rng = random.Random(seed)
        self.work, self.folder = work, work / "data" / "storm"
        self.tag = uuid.uuid4().hex
        self.report = Report(seed)
        self.dataset = Dataset(work / "prompts.jsonl", self.rng)
        self.disk, self.on_small_disk = Disk(self.folder), on_small_disk
        self.damage = Damage(self.folder, random.Random(seed))
        self.window: Window | None = None
        self.last: Window | None = None

    def run(self) -> Report:
        """Go through the whole storm and return what it found."""
        began = time.monotonic()
        answers: dict[str, Any] = {
            "latency": self.rng.uniform(0.02, 0.08),
            "jitter": 0.5,
            "steps": self.rng.randint(0, 2),
        }
        rules = self._faulty_prompts() if self.rng.random() < 0.5 else []
        with ScriptedServer(rules, **answers) as self.server:
            try:
                self._blow()
                self.server.control(script=answers, outage=None)
                self._calm()
                self._judge()
            finally:
                kill_all(self.tag)
                self.disk.unmount()
        self.report.seconds = time.monotonic() - began
        return self.report

    def _faulty_prompts(self) -> list[dict[str, Any]]:
        return [{"regex": f"^prompt {3 * number}\\b", "faults": [fault]} for number, fault in enumerate(FAULTS)]

    def _blow(self) -> None:
        if self.on_small_disk:
            self.disk.mount()
        for _ in range(self.rng.randint(2, 4)):
            kinds = ["fill_disk"] if self.on_small_disk and self.rng.random() < 0.7 else self.rng.choice(WEATHER)
            strikes = [draw_strike(self.rng, kinds) for _ in range(self.rng.choice([1, 1, 2]))]
            self._start(self.rng.choice([snakemake, snakemake, batch_runner]), strikes)
            self._after_start(self.rng.choice(["wait", "go on", "kill"]))
            self._between_starts()

    def _after_start(self, what: str) -> None:
        """See to processes that outlive their start: wait for them, kill them, or start again beside them."""
        if not tagged(self.tag):
            return
        self.report.note(f"orphans: {what}")
        if what == "wait":
            self._wait_for_orphans(lambda: bool(tagged(self.tag)))
        elif what == "kill":
            assert self.window
            self.window.gentle = False
            kill_all(self.tag)

    def _between_starts(self) -> None:
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            self.report.note(f"dataset: {self.dataset.change()}")
            self.report.changes += 1
        for _ in range(self.rng.choice([0, 0, 0, 1, 2])):
            if not tagged(self.tag):  # no promise covers damage to a file that is being written
                self._close_window()
                self.report.note(f"damage: {self.damage.strike()}")
                self.report.damages += 1

    def _calm(self) -> None:
        self._wait_for_orphans(lambda: len(tagged(self.tag)) > len(shards(self.folder)))
        for _ in range(CALM_STARTS):
            if status := self._start(self.rng.choice([snakemake, batch_runner]), []):
                self.report.broken("an undisturbed start failed", f"status {status}")
            if self.dataset.prompts <= count_rows(durable_rows(self.folder)):
                break
        self._close_window()

    def _wait_for_orphans(self, are_there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while are_there():
            if time.monotonic() > deadline:
                self.report.broken("processes hang", str([" ".join(p.cmdline()) for p in tagged(self.tag)]))
                kill_all(self.tag)
            time.sleep(0.1)

    def _start(self, launch: Launch, strikes: list[Strike]) -> int:
        """Start the pipeline, strike it and wait for its end; return the exit status."""
        self._close_window()
        cores, concurrency = self.rng.randint(1, 3), self.rng.randint(2, 5)
        settings = {**SETTINGS, "base_url": self.server.base_url, "concurrency": concurrency}
        settings |= {"batch_size": self.rng.choice([4, 7, 10, 25])}
        settings |= {"max_consecutive_failures": self.rng.choice([3, 10])}
        self.window = self._open_window(cores * concurrency)
        self.report.starts += 1
        self.report.note(f"{launch.__name__}: {cores} cores, {settings}, {self.dataset.prompts.total()} prompts")
        since = datetime.now(UTC).isoformat(timespec="milliseconds")
        log = self.work / f"start_{self.report.starts}.log"
        started = Started(launch(cores, settings), self.work, self.folder, self.tag, log)
        self._strike(strikes, Scene(started, self.server, self.disk, self.rng))
        status = self._ended(started)
        if status == 0:
            self._honest(since)
        return status

    def _strike(self, strikes: list[Strike], scene: Scene) -> None:
        for strike in strikes:
            struck = strike_when_due(strike, scene)
            self.report.note(f"{'struck' if struck else 'missed'}: {strike}")
            self.report.strikes[strike.kind] += struck
            assert self.window
            self.window.gentle &= not struck or strike.kind in GENTLE

    def _ended(self, started: Started) -> int:
        deadline = time.monotonic() + PATIENCE_S
        while not started.ended() and time.monotonic() < deadline:
            time.sleep(0.02)
        if not started.ended():
            self.report.broken("the start hangs", f"for {PATIENCE_S} s")
            kill_all(self.tag)
        status = started.root.wait()
        self.report.note(f"status {status}")
        return status

    def _honest(self, since: str) -> None:
        """Status 0 means that each prompt was attempted and that the results say what there is."""
        after, wanted = durable_rows(self.folder), self.dataset.prompts
        if left := unattempted(wanted, after, self.folder, since):
            self.report.broken("status 0 though prompts were not attempted", repr(left))
        if problem := results_problem(self.folder, wanted, after):
            self.report.broken("status 0 though the results are wrong", problem)

    def _open_window(self, in_flight: int) -> Window:
        before, orphans = durable_rows(self.folder), tagged(self.tag)
        wanted = self.dataset.prompts
        if orphans and self.last:
            wanted |= self.last.wanted
            in_flight += self.last.in_flight
        return Window(time.time(), wanted, before, in_flight, gentle=not orphans)

    def _close_window(self) -> None:
        if self.window is None:
            return
        self.window.gentle &= not tagged(self.tag)
        self.window.check(self.report, durable_rows(self.folder), self.server.log)
        self.last, self.window = self.window, None

    def _judge(self) -> None:
        aftermath = Aftermath(self.work, self.folder, self.dataset, self.report)
        aftermath.check_files(self.damage.made, torn_allowed=self.on_small_disk)
        aftermath.check_leftovers(self.tag)
        aftermath.check_results()
        settings = {**SETTINGS, "base_url": self.server.base_url, "run_name": "calm", "batch_size": 50}
        aftermath.compare(settings, self.tag)
