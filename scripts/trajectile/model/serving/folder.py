"""Where a shared server keeps its state, and how its users are known to be alive.

starting.lock     held by a process that looks for the server or starts it
server.lock       held by the server from its birth to its death
server.json       address, key and pid, once it answers
failure           why the last start failed, for those who waited for it
ending            how the last server ended, in its keeper's words
users/            one file for each who uses the server or waits for it, locked while they live
"""

import asyncio
import glob
import json
import os
import platform
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from trajectile.model.serving.locks import POLL_S, is_locked, try_lock
from trajectile.model.serving.users import User, any_lives


@dataclass(frozen=True)
class Endpoint:
    """Where a server answers: `base_url` ends in /v1; `api_key` is for the Authorization header."""

    base_url: str
    api_key: str
    pid: int


@dataclass(frozen=True)
class ServerFolder:
    """The folder of one server on one machine, or in one step of a cluster's job."""

    path: Path

    @property
    def starting_lock(self) -> Path:
        return self.path / "starting.lock"

    @property
    def server_lock(self) -> Path:
        return self.path / "server.lock"

    @property
    def state(self) -> Path:
        return self.path / "server.json"

    @property
    def failure(self) -> Path:
        return self.path / "failure"

    @property
    def ending(self) -> Path:
        return self.path / "ending"

    @property
    def users(self) -> Path:
        return self.path / "users"

    def make(self) -> None:
        """Create the folder, closed to other users."""
        self.users.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)

    @asynccontextmanager
    async def starting(self, user: User) -> AsyncIterator[None]:
        """Register a user and hold the starting lock, waiting for it as long as it takes."""
        descriptor = None
        while descriptor is None:
            with suppress(FileNotFoundError):  # removed by its last user at this moment
                self.make()
                user.register()
                descriptor = try_lock(self.starting_lock)
            if descriptor is None:
                await asyncio.sleep(POLL_S)
        try:
            self.make()
            user.register()
            yield
        finally:
            os.close(descriptor)

    def has_users(self) -> bool:
        """Whether anybody uses the server or waits for it. Call it under the starting lock."""
        return any_lives(self.users)

    def endpoint(self) -> Endpoint | None:
        """What the server last said of itself; true only while the server lock is held."""
        try:
            return Endpoint(**json.loads(self.state.read_text()))
        except FileNotFoundError:
            return None

    def serves(self, endpoint: Endpoint) -> bool:
        """Whether the server at this endpoint lives."""
        try:
            return is_locked(self.server_lock) and self.endpoint() == endpoint
        except FileNotFoundError:
            return False

    def publish(self, endpoint: Endpoint) -> None:
        """Write the state file, readable by its owner only."""
        fresh = self.path / "server.json.new"
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(endpoint), file)
        fresh.replace(self.state)

    def forget(self) -> None:
        """Remove what an earlier server left to read; call it under the starting lock, before a start."""
        for path in (self.state, self.failure, self.ending):
            path.unlink(missing_ok=True)

    def failed_since(self, moment: float) -> str:
        """Return why a start failed after `moment` (of time.time), "" where none did."""
        with suppress(FileNotFoundError):
            if self.failure.stat().st_mtime >= moment:
                return self.failure.read_text()
        return ""

    def remove(self, *, by_server: bool = False) -> None:
        """Remove the folder where nobody uses the server or waits for it, and no server lives but the one that asks."""
        with suppress(OSError):  # gone already, or another user's in a cache that users share
            held = try_lock(self.starting_lock)
            if held is None:
                return
            try:
                if not self.has_users() and (by_server or not is_locked(self.server_lock)):
                    self._discard()
            finally:
                os.close(held)

    def _discard(self) -> None:
        """Take the folder away at once, since others may make it anew while its files are removed one by one."""
        gone = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}")
        self.path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        with suppress(OSError):
            self.path.parent.rmdir()


def sweep(folder: ServerFolder) -> None:
    """Remove what servers of this machine left that were killed, as a scheduler does with its jobs."""
    machine = glob.escape(platform.node())
    for places in (machine, f"{machine}-*"):
        for path in folder.path.parents[1].glob(f"{places}/*"):
            ServerFolder(path).remove()
