"""The machine's own judgement: each broken promise is seen, and a kept one is not called broken."""

import json
import time
from collections import Counter
from pathlib import Path

import pytest

from faults.evidence import Row
from faults.report import Report
from faults.window import Window

A, B = Row("a", b"1"), Row("b", b"2")
SECOND_A = Row("a", b"3")


def judge(
    tmp_path: Path,
    wanted: str,
    before: set[Row],
    after: set[Row],
    calls: str,
    *,
    gentle: bool = True,
    orphans: bool = False,
) -> Report:
    """Judge a window in which the prompts in `calls` were asked, and answered where in capitals."""
    log = tmp_path / "events.jsonl"
    now = time.time()
    asked = [{"event": "asked", "prompt": call.lower(), "turn": 0, "final": False} for call in calls]
    answered = [
        {"event": "answered", "prompt": call.lower(), "turn": 0, "final": True} for call in calls if call.isupper()
    ]
    log.write_text("".join(json.dumps({"time": now, **event}) + "\n" for event in asked + answered))
    report = Report(seed=0)
    window = Window(now - 1, Counter(wanted), before, in_flight=1, beside_orphans=orphans, gentle=gentle)
    window.check(report, after, log)
    return report


@pytest.mark.parametrize(
    ("wanted", "before", "after", "calls", "gentle"),
    [
        ("ab", {A}, {A, B}, "B", True),
        ("aa", {A}, {A, SECOND_A}, "A", True),
        ("ab", {A}, {A, B}, "bbB", True),
        ("ab", {A}, {A}, "B", False),
        ("ab", {A}, {A}, "b", False),
    ],
)
def test_kept_promises(
    tmp_path: Path, wanted: str, before: set[Row], after: set[Row], calls: str, gentle: bool
) -> None:
    assert judge(tmp_path, wanted, before, after, calls, gentle=gentle).violations == []


def test_an_answer_may_be_lost_to_each_prompt_in_flight_in_a_shard_of_an_earlier_start(tmp_path: Path) -> None:
    report = judge(tmp_path, "ab", {A}, {A, B}, "BB", gentle=False, orphans=True)
    assert (report.violations, report.paid_twice, report.answers_lost_in_flight) == ([], 0, 1)
    [violation, *_] = judge(tmp_path, "ab", {A}, {A, B}, "BBB", gentle=False, orphans=True).violations
    assert violation.startswith("prompts answered more often than owed")


@pytest.mark.parametrize(
    ("wanted", "before", "after", "calls", "gentle", "promise"),
    [
        ("ab", {A}, {B}, "B", True, "rows lost"),
        ("ab", {A}, {A, B}, "aB", True, "finished prompts asked again"),
        ("ab", {A}, {A, B}, "BB", False, "prompts answered more often than owed"),
        ("ab", {A}, {A}, "B", True, "answers lost"),
        ("bc", set(), set(), "BC", False, "answers lost"),
    ],
)
def test_broken_promises(
    tmp_path: Path, wanted: str, before: set[Row], after: set[Row], calls: str, gentle: bool, promise: str
) -> None:
    [violation, *_] = judge(tmp_path, wanted, before, after, calls, gentle=gentle).violations
    assert violation.startswith(promise)


def test_the_numbers_are_those_of_the_violations(tmp_path: Path) -> None:
    report = judge(tmp_path, "ab", {A}, {B}, "aBB", gentle=False)
    assert (report.rows_lost, report.paid_twice, report.answers_lost_in_flight) == (1, 2, 1)
