"""How a server learns that it is wanted no more."""

import os
import time
from pathlib import Path

from trajectile.model.serving.folder import ServerFolder
from trajectile.model.serving.locks import try_lock
from trajectile.model.serving.places import is_here
from trajectile.run_folder.lease import living_owner

SWEEP_S = 0.5
BETWEEN_SHARDS_S = 120.0  # a loaded machine takes half a minute from one shard to the next


class Attendance:
    """Tells a server when it has been without users for `idle_s` seconds.

    Where the process that holds `lease`, and will start more users, lives in the same place, it is patient with it.
    """

    def __init__(self, folder: ServerFolder, idle_s: float, lease: Path | None = None) -> None:
        self._folder = folder
        self._idle_s = idle_s
        self._lease = lease
        self._last_seen = time.monotonic()

    def is_over(self) -> bool:
        """Look for users; where it is over the server has been taken out of the book, and nobody finds it any more."""
        held = try_lock(self._folder.starting_lock)
        try:
            if held is None or self._folder.has_users():
                self._last_seen = time.monotonic()
            elif time.monotonic() - self._last_seen >= self._patience_s():
                self._folder.state.unlink(missing_ok=True)
                return True
        finally:
            if held is not None:
                os.close(held)
        return False

    def _patience_s(self) -> float:
        owner = living_owner(self._lease) if self._lease else None
        return max(BETWEEN_SHARDS_S, self._idle_s) if owner and is_here(owner) else self._idle_s
