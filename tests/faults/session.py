"""A run folder under observation: the pipeline is started in it, struck, and watched to its end."""

import random
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from scripted_server.fixture import ScriptedServer

from faults.disk import Disk
from faults.evidence import durable_rows
from faults.instants import Strike, strike_when_due
from faults.judgement import results_problem, unattempted
from faults.processes import Started, kill_all, leftovers, tagged
from faults.prompts import Dataset
from faults.report import Report
from faults.strikes import GENTLE, Scene
from faults.window import Window

PATIENCE_S = 240
ORDERLY_S = 30
SETTINGS: dict[str, object] = {
    "dataset_file": "prompts.jsonl",
    "run_name": "storm",
    "model": "scripted",
    "distribution": "terminal_only",
    "max_retries": 2,
    "request_timeout": 6,
}

Launch = Callable[..., list[str]]


class Session:
    """The starts of one storm in the folder `work`, all of whose processes carry `tag`."""

    def __init__(self, work: Path, dataset: Dataset, server: ScriptedServer, report: Report) -> None:
        self.work, self.folder = work, work / "data" / "storm"
        self.dataset, self.server, self.report = dataset, server, report
        self.tag = uuid.uuid4().hex
        self.disk = Disk(self.folder)
        self.last_struck = ""
        self._window: Window | None = None
        self._last: Window | None = None

    def start(self, launch: Launch, cores: int, settings: dict[str, int], strikes: list[Strike], seed: float) -> int:
        """Start the pipeline, strike it and wait for its end; return the exit status."""
        self.close_window()
        self._window = self._open_window(cores * settings["concurrency"])
        self.report.starts += 1
        self.report.note(f"{launch.__name__}: {cores} cores, {settings}, {self.dataset.prompts.total()} prompts")
        since = datetime.now(UTC).isoformat(timespec="milliseconds")
        command = launch(cores, {**SETTINGS, "base_url": self.server.base_url, **settings})
        started = Started(command, self.work, self.folder, self.tag, self.work / f"start_{self.report.starts}.log")
        self._strike(strikes, Scene(started, self.server, self.disk, random.Random(seed)))
        status = self._ended(started)
        if status == 0:
            self._honest(since)
        return status

    def _strike(self, strikes: list[Strike], scene: Scene) -> None:
        assert self._window
        self.last_struck = ""
        for strike in strikes:
            struck = strike_when_due(strike, scene)
            self.report.note(f"{'struck' if struck else 'missed'}: {strike}")
            self.report.strikes[strike.kind] += struck
            self.last_struck = strike.kind if struck else self.last_struck
            self._window.gentle &= not struck or strike.kind in GENTLE

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

    def check_orderly(self) -> None:
        """After a strike that stops all processes none may be left, but for those of earlier starts."""
        assert self._window
        if not self._window.beside_orphans and (left := leftovers(self.tag, self.folder, ORDERLY_S)):
            self.report.broken(f"processes outlive {self.last_struck}", ", ".join(left))

    def wait_while(self, are_there: Callable[[], bool]) -> None:
        """Wait for processes that outlived their start."""
        deadline = time.monotonic() + PATIENCE_S
        while are_there():
            if time.monotonic() > deadline:
                self.report.broken("processes hang", str([" ".join(p.cmdline()) for p in tagged(self.tag)]))
                kill_all(self.tag)
            time.sleep(0.1)

    def kill_orphans(self) -> None:
        assert self._window
        self._window.gentle = False
        kill_all(self.tag)

    def _open_window(self, in_flight: int) -> Window:
        before, orphans, wanted = durable_rows(self.folder), tagged(self.tag), self.dataset.prompts
        if orphans and self._last:
            wanted |= self._last.wanted
            in_flight += self._last.in_flight
        return Window(time.time(), wanted, before, in_flight, beside_orphans=bool(orphans), gentle=not orphans)

    def close_window(self) -> None:
        """Judge the last start, now that the next one or damage is to come."""
        if self._window is None:
            return
        self._window.gentle &= not tagged(self.tag)
        self._window.check(self.report, durable_rows(self.folder), self.server.log)
        self._last, self._window = self._window, None
