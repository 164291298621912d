"""Who uses a server or waits for it: one file each, locked while its process lives."""

import os
import secrets
from pathlib import Path

from trajectile.model.serving.locks import is_at, is_locked, try_lock


class User:
    """A registration that ends with `leave` or with the process."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._descriptor: int | None = None

    def register(self) -> None:
        """Be in the folder, also where it was removed since and made anew; it is certain under the starting lock."""
        if self._descriptor is None or not is_at(self._path, self._descriptor):
            self.leave()
            self._descriptor = try_lock(self._path)

    def leave(self) -> None:
        """Give up the registration."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._path.unlink(missing_ok=True)
            self._descriptor = None


def any_lives(folder: Path) -> bool:
    """Whether any user lives; the files of dead ones are removed. Call it under the starting lock."""
    living = False
    for path in folder.glob("*"):
        if is_locked(path):
            living = True
        else:
            path.unlink(missing_ok=True)
    return living
