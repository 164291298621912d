"""Turns at the files of a run folder, by locks that the kernel drops with the process that holds them."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trajectile.errors import UserError


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Wait for the lock on `path`, a file of its own, and hold it; yield its descriptor. UserError without locks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            raise UserError(
                f"{path.parent} is on a file system without locks ({os.strerror(error.errno or 0)}). Work in a folder "
                "that has them: NFS from version 4, Lustre mounted with -o flock."
            ) from error
        yield file.fileno()
