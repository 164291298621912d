"""The paths of a run folder, and writing that survives a kill."""

import hashlib
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import psutil

TEMPORARY_NAME = re.compile(r"\..+\.(\d+)@(.+)\.tmp")
SHARD_NAME = re.compile(r"(?:batch|shard)_(0|[1-9][0-9]*)(\..+)")


class RunFolder:
    """Names every file of one run; creates none."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.run_json = root / "run.json"
        self.settings_json = root / "settings.json"
        self.lease = root / "run.lease"
        self.stop = root / "run.stop"
        self.mishaps = root / "journal" / "mishaps.txt"
        self.spent = root / "journal" / "spent.json"
        self.first_request = root / "first_request.json"
        self.scratch = _scratch(root)
        self.checkpoint = root / "checkpoint.json"
        self.discarded = root / "discarded.jsonl"
        self.filtered = root / "keys" / "filtered.json"
        self.statistics = root / "statistics.json"
        self.trajectories = root / "trajectories.jsonl"
        self.failures = root / "failures.jsonl"
        self.verdict = root / "verdict.json"
        self.collected = root / ".collected"
        self.card = root / "README.md"
        self.server_logs = root / "logs" / "model_server"
        self.served = self.server_logs / "served"
        self._keys = root / "keys"

    def batch(self, number: int) -> Path:
        return self.root / f"batch_{number}.jsonl"

    def shard(self, number: int) -> Path:
        return self.root / "shards" / f"shard_{number}.jsonl"

    def journal(self, number: int) -> Path:
        return self.root / "journal" / f"shard_{number}.jsonl"

    def times(self, number: int) -> Path:
        """Start and last heartbeat of each attempt at a shard, and its counts, kept for ever."""
        return self.root / "journal" / f"shard_{number}.times"

    def shard_lease(self, number: int) -> Path:
        return self.root / "journal" / f"shard_{number}.lease"

    def ledger(self, number: int) -> Path:
        """The failed attempts of a shard."""
        return self.root / "failures" / f"shard_{number}.jsonl"

    def keys(self, described: Path) -> Path:
        """The remembered keys of a batch file, a shard file or the dataset, which may be named like either."""
        prefix = "" if str(described).startswith(f"{self.root}{os.sep}") else "dataset_"
        return self._keys / f"{prefix}{described.name}.keys"

    def export(self, name: str) -> Path:
        """The folder of an export format."""
        return self.root / "exports" / name

    def manifest(self, digest: str) -> Path:
        return self.root / "shards" / f"manifest_{digest}.json"

    def images(self, digest: str) -> Path:
        """What was found of the images that a plan needs."""
        return self.root / "shards" / f"images_{digest}.json"

    def numbers(self, folder: str, suffix: str = ".jsonl", prefix: str = "") -> list[int]:
        """Shard numbers of the files so named in a folder of the run ("" is the run folder itself), sorted."""
        return sorted(_numbers(self.root / folder, prefix, suffix))


def _scratch(root: Path) -> Path:
    """Where sandboxes write: TRAJECTILE_SCRATCH may name a local disk, by variables that each node has its own of."""
    named = os.environ.get("TRAJECTILE_SCRATCH", "")
    if not named:
        return root / "scratch"
    own = hashlib.sha256(os.fsencode(root.absolute())).hexdigest()[:16]
    return Path(os.path.expandvars(named)).absolute() / f"trajectile-{own}"


def _numbers(folder: Path, prefix: str, suffix: str) -> Iterator[int]:
    with suppress(FileNotFoundError):
        for name in os.listdir(folder):  # noqa: PTH208 (plans list 10,000 files; a Path for each is slow)
            if (number := shard_number(name, prefix, suffix)) is not None:
                yield number


def shard_number(name: str, prefix: str, suffix: str) -> int | None:
    """Return the number in the name of a shard's file, None for others, such as a copy that somebody keeps."""
    match = SHARD_NAME.fullmatch(name) if name.startswith(prefix) else None
    return int(match[1]) if match and match[2] == suffix else None


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path`, durably and at once, when the block ends without error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(path)
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomic(path: Path, data: bytes) -> None:
    """Replace `path` by `data` so that a reader sees the old or the new content, never a part."""
    with replacing(path) as file:
        file.write(data)


def replace_file(path: Path, data: bytes) -> None:
    """Replace `path` by `data` at once, without waiting for the disk: for what may be lost in a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(path)
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}@{socket.gethostname()}.tmp")


def temporaries(root: Path) -> Iterator[tuple[Path, int, str]]:
    """Yield each half-written file of a run folder with pid and host of the process that wrote it."""
    folders = [root, *(Path(entry) for entry in os.scandir(root) if entry.is_dir() and entry.name != "scratch")]
    for entry in chain.from_iterable(map(os.scandir, folders)):
        if owner := TEMPORARY_NAME.fullmatch(entry.name):
            yield Path(entry), int(owner[1]), owner[2]


def remove_temporaries(root: Path) -> None:
    """Remove what processes of this host were writing in a run folder when they were killed."""
    for path, pid, host in temporaries(root):
        if host == socket.gethostname() and not psutil.pid_exists(pid):
            path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
