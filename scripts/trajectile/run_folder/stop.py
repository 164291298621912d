"""Markers that the shards of one start of a run leave each other: a fatal stop, said once; a server that served."""

import msgspec

from trajectile.run_folder.lease import read_owner
from trajectile.run_folder.paths import RunFolder, replace_file, write_atomic


class Stop(msgspec.Struct):
    """Why a start of the run (named by its lease's token) was stopped."""

    invocation: str
    message: str


def invocation(folder: RunFolder) -> str:
    """Return what names this start of the run, "" where a shard is run by hand."""
    owner = read_owner(folder.lease)
    return owner.token if owner else ""


def mark_stop(folder: RunFolder, message: str) -> bool:
    """Leave the marker for this start of the run, the first reason; False where nobody will read it."""
    if not stopped(folder):
        write_atomic(folder.stop, msgspec.json.encode(Stop(invocation(folder), message)))
    return bool(stopped(folder))


def stopped(folder: RunFolder) -> str:
    """Return why this start of the run was stopped, "" where it was not."""
    try:
        stop = msgspec.json.decode(folder.stop.read_bytes(), type=Stop)
    except (FileNotFoundError, msgspec.DecodeError):
        return ""
    return stop.message if stop.invocation and stop.invocation == invocation(folder) else ""


def mark_served(folder: RunFolder) -> None:
    """Leave word that a server which this start of the run started itself has served."""
    if not has_served(folder):
        replace_file(folder.served, invocation(folder).encode())


def has_served(folder: RunFolder) -> bool:
    """Whether a server that this start of the run started itself has served; a shard run by hand knows of none."""
    start = invocation(folder).encode()
    return bool(start) and folder.served.exists() and folder.served.read_bytes() == start
