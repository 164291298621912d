"""File locks that the kernel drops with the process that holds them, even after kill -9."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trajectile.errors import UserError

POLL_S = 0.1


def try_lock(path: Path) -> int | None:
    """An open descriptor that holds the lock on `path`, or None while another holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        os.close(descriptor)
        raise UserError(
            f"{path.parent} is on a file system without locks ({error}): set TRAJECTILE_CACHE, and TMPDIR for servers, "
            "to local folders"
        ) from error
    if not is_at(path, descriptor):
        os.close(descriptor)
        return None
    return descriptor


def is_at(path: Path, descriptor: int) -> bool:
    """Whether the locked file still has its name: its folder may have been removed while it was opened."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def is_locked(path: Path) -> bool:
    """Whether a living process holds the lock on `path`."""
    descriptor = try_lock(path)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


@asynccontextmanager
async def file_lock(path: Path) -> AsyncIterator[None]:
    """Hold the lock on `path`, waiting for it as long as it takes."""
    while (descriptor := try_lock(path)) is None:  # noqa: ASYNC110 (the kernel has no event for this)
        await asyncio.sleep(POLL_S)
    try:
        yield
    finally:
        os.close(descriptor)
