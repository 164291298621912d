"""Where a shared server keeps its state, and how its users are known to be alive.

servers/<host>[-<job>]/<model>-p<parallel>/
  starting.lock     held by a process that looks for the server or starts it
  server.lock       held by the server from its birth to its death
  server.json       port, key and pid, once it answers
  server.log        its output
  users/            one file a user, locked by it while it lives
"""

import json
import os
import platform
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from trajectile.model.local.catalogue import Entry, cache_folder
from trajectile.model.local.locks import is_locked, try_lock

LOG_TAIL_LINES = 15


@dataclass(frozen=True)
class Endpoint:
    """Where a server answers: `base_url` ends in /v1; `api_key` is for the Authorization header."""

    base_url: str
    api_key: str
    pid: int


@dataclass(frozen=True)
class ServerFolder:
    """The folder of one server: one model, one number of parallel requests, one machine or cluster job."""

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
    def log(self) -> Path:
        return self.path / "server.log"

    @property
    def users(self) -> Path:
        return self.path / "users"

    def make(self) -> None:
        """Create the folder, closed to other users."""
        self.users.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)

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

    def publish(self, endpoint: Endpoint) -> None:
        """Write the state file, readable by its owner only."""
        fresh = self.path / "server.json.new"
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(endpoint), file)
        fresh.replace(self.state)

    def log_tail(self) -> str:
        """The last lines of the server's log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-LOG_TAIL_LINES:]) or "(no output)"


@dataclass(frozen=True)
class User:
    """A registration that ends with `leave` or with the process."""

    path: Path
    descriptor: int

    def leave(self) -> None:
        """Give up the registration."""
        os.close(self.descriptor)
        self.path.unlink(missing_ok=True)


def server_folder(entry: Entry, n_parallel: int) -> ServerFolder:
    """The folder of the server for a model on this machine; on a cluster each job has its own.

    A scheduler kills what a job started when the job ends, so jobs on one node cannot share a server.
    """
    job = os.environ.get("SLURM_JOB_ID")
    place = f"{platform.node()}-{job}" if job else platform.node()
    return ServerFolder(cache_folder() / "servers" / place / f"{entry.slug}-p{n_parallel}")
