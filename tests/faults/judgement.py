"""What must hold when a storm is over."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from trajectile.dataset.work import prompt_key

from faults.evidence import Row, count_rows, failures_since, lines_of, parse, prompt_of
from faults.processes import Started, leftovers, shards, snakemake
from faults.prompts import Dataset
from faults.report import Report

VARYING = ("batch_num", "timestamp", "duration_seconds", "model_seconds")


class Aftermath:
    """Checks the run folder of a storm, and compares its results with those of a run in peace."""

    def __init__(self, work: Path, folder: Path, dataset: Dataset, report: Report) -> None:
        self.work, self.folder, self.dataset, self.report = work, folder, dataset, report

    def check_files(self, damaged: set[bytes], *, torn_allowed: bool) -> None:
        """Every line is JSON, but for damage that was made on purpose (and writes that a full disk cut short)."""
        paths = [
            path for kind in ("batch_*", "journal/shard_*", "failures/*") for path in self.folder.glob(f"{kind}.jsonl")
        ]
        for path in paths:
            bad = [line for line in lines_of(path) if parse(line) is None and line not in damaged]
            if bad and not torn_allowed:
                self.report.broken("invalid lines", f"{path.name}: {bad[0][:80]!r}")

    def check_leftovers(self, tag: str) -> None:
        """No process, no scratch folder, no half-written file and no lease of a living owner is left."""
        found = {
            "processes left": leftovers(tag, self.folder),
            "scratch folders left": [path.name for path in self.folder.glob("scratch/*")],
            "temporary files left": [path.name for path in self.folder.rglob(".*.tmp")],
            "leases left": [str(process) for process in shards(self.folder)],
        }
        for promise, left in found.items():
            if left:
                self.report.broken(promise, ", ".join(left))

    def check_results(self) -> None:
        """Each prompt of the dataset has exactly one row a copy, in the dataset's order."""
        expected: list[str] = [row["prompt"] for row in self.dataset.rows]
        found = [prompt_of(row) for row in results(self.folder)]
        if found != expected:
            missing = Counter(expected) - Counter(found)
            extra = Counter(found) - Counter(expected)
            self.report.differing += missing.total() + extra.total()
            self.report.broken("wrong rows", f"missing {dict(missing)}, too many {dict(extra)}")

    def compare(self, settings: dict[str, object], tag: str) -> None:
        """Run the same dataset in peace, in another folder, and compare row by row."""
        calm = self.work / "calm"
        calm.mkdir()
        shutil.copy(self.dataset.path, calm)
        folder = calm / "data" / str(settings["run_name"])
        started = Started(snakemake(2, settings), calm, folder, tag, self.work / "calm.log")
        if started.root.wait(timeout=240):
            self.report.broken("the run in peace failed", "see calm.log")
            return
        pairs = zip(results(self.folder), results(folder), strict=False)
        different = [ours for ours, theirs in pairs if self._without_times(ours) != self._without_times(theirs)]
        self.report.differing += len(different)
        if different:
            self.report.broken("results differ", ", ".join(repr(prompt_of(row)) for row in different))

    def _without_times(self, row: dict[str, Any]) -> dict[str, Any]:
        """A copy that stayed when others left the dataset keeps its own ordinal."""
        varying = [*VARYING, "ordinal"] if prompt_of(row) in self.dataset.shrunk else VARYING
        return {**row, "metadata": {name: value for name, value in row["metadata"].items() if name not in varying}}


def results(folder: Path) -> list[dict[str, Any]]:
    return [row for row in map(parse, lines_of(folder / "trajectories.jsonl")) if row]


def unattempted(wanted: Counter[str], after: set[Row], folder: Path, since: str) -> list[str]:
    """Return the prompts that have neither a row nor a failed attempt since an ISO time."""
    failed = failures_since(folder, since)
    missing = wanted - count_rows(after)
    return [prompt for prompt, count in missing.items() if failed[prompt_key(prompt, [], "", "")] < count]


def results_problem(folder: Path, wanted: Counter[str], after: set[Row]) -> str:
    """Return what trajectories.jsonl and verdict.json get wrong about the rows that there are, "" for nothing."""
    expected = wanted & count_rows(after)
    found = Counter(map(prompt_of, results(folder)))
    if found != expected:
        return f"rows missing {dict(expected - found)}, too many {dict(found - expected)}"
    verdict = json.loads((folder / "verdict.json").read_bytes())
    owed = (wanted - expected).total()
    return "" if verdict["owed"] == owed else f"verdict.json says {verdict['owed']} owed, {owed} are"
