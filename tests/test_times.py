import time
from pathlib import Path

import pytest
from trajectile.run_folder.times import Clock, read_times


def test_each_attempt_is_a_session_that_grows_with_each_beat(tmp_path: Path) -> None:
    path = tmp_path / "journal" / "shard_0.times"
    before = time.time()
    first = Clock(path)
    [(start, end)] = read_times(path).sessions
    assert before <= start <= end <= time.time()
    time.sleep(0.02)
    first.beat()
    [(same, later)] = read_times(path).sessions
    assert same == start and later >= end + 0.02
    Clock(path)
    sessions = read_times(path).sessions
    assert sessions[0] == (start, later) and len(sessions) == 2, "a killed attempt keeps its last heartbeat"


@pytest.mark.parametrize("damage", [b"", b'{"sessions": [[1', b'{"sessions": 3}', b"\x00"])
def test_a_damaged_file_is_begun_anew(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "shard_0.times"
    path.write_bytes(damage)
    assert read_times(path).sessions == []
    Clock(path)
    assert len(read_times(path).sessions) == 1
