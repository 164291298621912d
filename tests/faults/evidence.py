"""What can be seen from outside, without the library: rows and failures on disk, calls in the server's log."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from scripted_server.fixture import read_log


class Row(NamedTuple):
    """A finished row as it lies on disk; `line` tells it from every other row that was ever made."""

    prompt: str
    line: bytes


class Calls(NamedTuple):
    """What the server saw in a stretch of time, by prompt: episodes begun, and final answers sent in full."""

    begun: Counter[str]
    finals: Counter[str]


def durable_rows(folder: Path) -> set[Row]:
    """Return the rows in journals and batch files. Journals come first: rows move from them into batches."""
    paths = [*folder.glob("journal/shard_*.jsonl"), *folder.glob("batch_*.jsonl")]
    return {row for path in paths for row in _rows(path)}


def count_rows(rows: set[Row]) -> Counter[str]:
    return Counter(row.prompt for row in rows)


def _rows(path: Path) -> Iterator[Row]:
    for line in lines_of(path):
        row = parse(line)
        if row is not None and row.keys() >= {"prompt_key", "conversations", "metadata"}:
            yield Row(prompt_of(row), line)


def lines_of(path: Path) -> list[bytes]:
    try:
        return [line.rstrip(b"\r") for line in path.read_bytes().split(b"\n") if line.strip()]
    except FileNotFoundError:
        return []


def parse(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def prompt_of(row: dict[str, Any]) -> str:
    text: str = row["conversations"][0]["value"]
    return text


def failures_since(folder: Path, timestamp: str) -> Counter[str]:
    """Count the failed attempts after an ISO time in UTC, by prompt key."""
    lines = [line for path in folder.glob("failures/shard_*.jsonl") for line in lines_of(path)]
    failures = [failure for failure in map(parse, lines) if failure]
    return Counter(failure["prompt_key"] for failure in failures if failure["timestamp"] >= timestamp)


def calls_between(log: Path, start: float, end: float) -> Calls:
    """Count what the server saw from `start` to `end` (epoch seconds)."""
    events = [event for event in read_log(log) if start <= event["time"] < end]
    begun = Counter(event["prompt"] for event in events if event["event"] == "asked" and event["turn"] == 0)
    return Calls(begun, Counter(event["prompt"] for event in events if event["final"]))
