"""The log of a server stays short enough for a shared folder, and shows its start and its end."""

import shlex
import sys
from pathlib import Path

import pytest
from helpers import wait_until
from trajectile.model.serving import logs
from trajectile.model.serving.logs import BoundedLog, begin_log, log_tail
from trajectile.model.serving.tree import start

TALKER = "import itertools, sys\nfor n in itertools.count():\n    print(f'request {n}')"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(logs, "LOG_BYTES", 1 << 20)
    monkeypatch.setattr(logs, "HEAD_BYTES", 1 << 10)
    (tmp_path / "log").write_text("an earlier start\n")
    begin_log(tmp_path / "log", "start of the server")
    return tmp_path / "log"


def test_a_short_log_is_left_as_it_is(path: Path) -> None:
    bounded = BoundedLog(path)
    with path.open("a") as file:
        file.write("loading\n" * 1000)
    before = path.read_bytes()
    bounded.keep_short()
    assert path.read_bytes() == before


def test_the_start_and_the_end_of_a_long_log_are_kept(path: Path) -> None:
    bounded = BoundedLog(path)
    with path.open("a") as file:
        file.write("loading\n" + "request\n" * (1 << 18) + "out of memory\n")
    bounded.keep_short()
    lines = path.read_text().splitlines()
    assert (
        lines[0] == "an earlier start" and lines[2] == "loading" and "its middle was cut out here" in path.read_text()
    )
    assert log_tail(path).splitlines() == ["request"] * 14 + ["out of memory"]
    assert path.stat().st_size < logs.TAIL_BYTES + 2048


def test_a_server_goes_on_writing_where_its_log_was_cut(path: Path) -> None:
    bounded = BoundedLog(path)
    talker = start(f"exec {sys.executable} -c {shlex.quote(TALKER)}", path, {})
    try:
        for _ in range(3):
            wait_until(lambda: path.stat().st_size > 2 << 20, "much talk")
            bounded.keep_short()
    finally:
        talker.kill()
        talker.wait()
    assert b"\0" not in path.read_bytes() and path.read_text().count("was cut out here") == 1
    assert log_tail(path).splitlines()[-2].startswith("request ")


def test_a_log_that_is_taken_away_ends_nothing(path: Path) -> None:
    bounded = BoundedLog(path)
    path.unlink()
    bounded.keep_short()
    assert not path.exists()
