"""One living owner for a shard or a run: a small file that names host, process and its start time."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import psutil

from trajectile.processes import start_time
from trajectile.run_folder.locks import locked
from trajectile.scheduler import job_id

HEARTBEAT_S = 10.0
SILENCE_S = 60.0
POLL_S = 1.0
START_TIME_SLACK_S = 2.0


class LeaseLost(Exception):
    """Another process has taken the lease over."""


class Owner(msgspec.Struct, frozen=True):
    """Who holds a lease: `birth` tells the process from others with its pid, `started` is the same in epoch seconds.

    `job_id` is the scheduler's; `token` differs for each holder.
    """

    host: str
    pid: int
    started: float
    job_id: str
    token: str
    birth: str = ""

    def __str__(self) -> str:
        job = f", job {self.job_id}" if self.job_id else ""
        return f"process {self.pid} on {self.host}{job}"


class Lease:
    """The lease at `path`: `acquire` at once or not at all, `held` before each write, `release` at the end."""

    def __init__(self, path: Path, pid: int | None = None) -> None:
        self.path = path
        process = psutil.Process(pid or os.getpid())
        self.owner = Owner(
            socket.gethostname(),
            process.pid,
            process.create_time(),
            job_id(),
            os.urandom(8).hex(),
            start_time(process.pid),
        )
        self._beaten = time.monotonic()

    def acquire(self) -> Owner | None:
        """Take the lease and return None, or return its living owner."""
        with locked(self.path.with_name(f"{self.path.name}.lock")) as file:
            holder = read_owner(self.path)
            if holder and holder.token != self.owner.token and _alive(holder, self.path, _file_system_time(file)):
                return holder
            self._write()
            self._beaten = time.monotonic()
        return None

    async def wait(self) -> Owner | None:
        """Wait until the lease is ours; return the owner that was waited for, if there was one."""
        waited_for = None
        while holder := self.acquire():
            waited_for = holder
            await asyncio.sleep(POLL_S)
        return waited_for

    def check(self) -> None:
        """Raise LeaseLost where the lease is no longer ours."""
        holder = read_owner(self.path)
        if holder is None or holder.token != self.owner.token:
            raise LeaseLost(f"the lease {self.path.name} went to {holder or 'nobody'}")

    def beat(self) -> None:
        """Show that the owner lives. OSError where the file system has failed for so long that others may doubt it."""
        try:
            self.check()
            os.utime(self.path)
            self._beaten = time.monotonic()
        except OSError:
            if time.monotonic() - self._beaten > SILENCE_S:
                raise

    def release(self) -> None:
        with suppress(LeaseLost):
            self.check()
            self.path.unlink(missing_ok=True)

    def _write(self) -> None:
        temporary = self.path.with_name(f".{self.path.name}.{self.owner.token}")
        temporary.write_bytes(msgspec.json.encode(self.owner))
        temporary.replace(self.path)


@asynccontextmanager
async def kept(lease: Lease) -> AsyncIterator[None]:
    """Show that the owner lives while something takes its time; a loss is left for the next check to find."""

    async def beat() -> None:
        with suppress(LeaseLost):
            while True:
                await asyncio.sleep(HEARTBEAT_S)
                with suppress(OSError):
                    lease.beat()

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


def read_owner(path: Path) -> Owner | None:
    """Return who is named by a lease file, alive or not."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Owner)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def living_owner(path: Path) -> Owner | None:
    """Return who holds a lease now, None where nobody does."""
    holder = read_owner(path)
    return holder if holder and _alive(holder, path, time.time()) else None


def _alive(owner: Owner, path: Path, now: float) -> bool:
    """On this host the process decides at once; on another its heartbeat (the file's time) does."""
    if owner.host != socket.gethostname():
        with suppress(FileNotFoundError):
            return abs(now - path.stat().st_mtime) < SILENCE_S  # no clock is so far ahead of ours
        return False
    with suppress(psutil.NoSuchProcess):
        return start_time(owner.pid) == owner.birth and psutil.Process(owner.pid).status() != psutil.STATUS_ZOMBIE
    return False


def _file_system_time(descriptor: int) -> float:
    """Return the time by the clock that heartbeats are written with, a file server's perhaps: machines' may differ."""
    os.utime(descriptor)
    return os.fstat(descriptor).st_mtime
