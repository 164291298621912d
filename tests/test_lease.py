import asyncio
import errno
import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from trajectile.errors import UserError
from trajectile.run_folder.lease import SILENCE_S, Lease, LeaseLost, Owner, living_owner, read_owner


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "shard_0.lease"


@pytest.fixture
def sleeper() -> "Iterator[subprocess.Popen[bytes]]":
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def write(path: Path, owner: Owner, age_s: float = 0) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.encode(owner))
    os.utime(path, (time.time() - age_s,) * 2)


def test_a_living_holder_keeps_it_until_it_lets_go(path: Path) -> None:
    first, second = Lease(path), Lease(path)
    assert first.acquire() is None and first.acquire() is None
    assert second.acquire() == first.owner == living_owner(path)
    assert str(first.owner) == f"process {os.getpid()} on {socket.gethostname()}"
    second.release()
    first.check()
    first.release()
    assert living_owner(path) is None and second.acquire() is None


def test_the_job_of_a_scheduler_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    assert str(Lease(path).owner).endswith("job 4711")


def test_a_dead_process_holds_nothing(path: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    assert Lease(path, sleeper.pid).acquire() is None
    dead = Lease(path).acquire()
    assert dead is not None
    sleeper.kill()
    zombie_or_gone = psutil.Process(sleeper.pid)
    while zombie_or_gone.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    assert Lease(path).acquire() is None, "a zombie holds nothing"
    sleeper.wait()
    write(path, dead)
    assert Lease(path).acquire() is None


def test_a_pid_that_was_given_to_another_process_holds_nothing(path: Path) -> None:
    mine = Lease(path).owner
    write(path, msgspec.structs.replace(mine, birth=f"1{mine.birth}"))
    assert living_owner(path) is None
    write(path, msgspec.structs.replace(mine, birth=""))
    assert living_owner(path) is None
    moved = msgspec.structs.replace(mine, started=mine.started - 5)  # as after a correction of the clock
    write(path, moved)
    assert living_owner(path) == moved


def test_on_another_host_the_heartbeat_decides(path: Path) -> None:
    there = Owner("another.host", os.getpid(), 1.0, "", "there")
    write(path, there, age_s=SILENCE_S - 10)
    assert Lease(path).acquire() == there
    write(path, there, age_s=SILENCE_S + 10)
    assert Lease(path).acquire() is None
    write(path, there, age_s=-86400.0)
    assert Lease(path).acquire() is None, "a time that is to come is none that a heartbeat left"


def test_clocks_of_machines_may_differ_from_that_of_the_file_system(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Owner("another.host", os.getpid(), 1.0, "", "there")
    write(path, there)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 2 * SILENCE_S)
    assert Lease(path).acquire() == there


def test_a_file_system_that_fails_for_a_moment_costs_no_lease(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = Lease(path)
    lease.acquire()

    def stale(_path: Path) -> None:
        raise OSError(errno.ESTALE, "Stale file handle")

    with monkeypatch.context() as patched:
        patched.setattr(os, "utime", stale)
        lease.beat()
        real = time.monotonic
        patched.setattr(time, "monotonic", lambda: real() + 2 * SILENCE_S)
        with pytest.raises(OSError, match="Stale"):
            lease.beat()
    lease.beat()


def test_a_file_system_without_locks_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(UserError, match=rf"{path.parent} is on a file system without locks \(Function not implemented"):
        Lease(path).acquire()


def test_a_heartbeat_makes_the_file_young(path: Path) -> None:
    lease = Lease(path)
    lease.acquire()
    os.utime(path, (1.0, 1.0))
    lease.beat()
    assert time.time() - path.stat().st_mtime < 5


def test_a_holder_notices_that_another_took_over(path: Path) -> None:
    old = Lease(path)
    old.acquire()
    new = Owner("another.host", 1, 1.0, "", "new")
    write(path, new)
    with pytest.raises(LeaseLost, match=r"process 1 on another\.host"):
        old.check()
    with pytest.raises(LeaseLost):
        old.beat()
    old.release()
    assert read_owner(path) == new, "a release must not take what is another's"
    path.unlink()
    with pytest.raises(LeaseLost, match="nobody"):
        old.check()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_a_damaged_lease_is_nobodys(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    assert living_owner(path) is None and Lease(path).acquire() is None


def test_waiting_ends_when_the_holder_lets_go(path: Path) -> None:
    first, second = Lease(path), Lease(path)
    first.acquire()

    async def run() -> Owner | None:
        waiting = asyncio.create_task(second.wait())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        first.release()
        return await waiting

    assert asyncio.run(run()) == first.owner
    second.check()
    assert asyncio.run(second.wait()) is None, "there was nobody to wait for"
