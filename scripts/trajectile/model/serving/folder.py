"""Where a shared server keeps its state, and how its users are known to be alive.

starting.lock     held by a process that looks for the server or starts it
server.lock       held by the server from its birth to its death
server.json       address, key and pid, once it answers
failure           why the last start failed, for those who waited for it
ending            how the last server ended, in its keeper's words
users/            one file a user, locked by it while it lives
"""

import asyncio
import json
import os
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from trajectile.model.serving.locks import POLL_S, is_locked, try_lock


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
    async def starting(self) -> AsyncIterator[None]:
        """Hold the starting lock, waiting for it as long as it takes."""
        descriptor = None
        while descriptor is None:
            with suppress(FileNotFoundError):  # removed by its last server at this moment
                self.make()
                descriptor = try_lock(self.starting_lock)
            if descriptor is None:
                await asyncio.sleep(POLL_S)
        try:
            yield
        finally:
            os.close(descriptor)

    def register(self) -> "User":
        """A new living user; call it under the starting lock."""
        path = self.users / f"{os.getpid()}-{secrets.token_hex(4)}"
        descriptor = try_lock(path)
        assert descriptor is not None, f"{path} is new and ours"
        return User(path, descriptor)

    def has_users(self) -> bool:
        """Whether any user lives; the files of dead ones are removed. Call it under the starting lock."""
        living = False
        for path in self.users.iterdir():
            if is_locked(path):
                living = True
            else:
                path.unlink(missing_ok=True)
        return living

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

    def remove(self) -> None:
        """Remove the folder where nobody looks for the server or uses it."""
        held = try_lock(self.starting_lock)
        if held is not None:
            if not self.has_users():
                shutil.rmtree(self.path, ignore_errors=True)
            os.close(held)


@dataclass(frozen=True)
class User:
    """A registration that ends with `leave` or with the process."""

    path: Path
    descriptor: int

    def leave(self) -> None:
        """Give up the registration."""
        os.close(self.descriptor)
        self.path.unlink(missing_ok=True)
