"""A fatal stop is said once: a marker that later shards of the same start of a run find."""

import msgspec

from trajectile.run_folder.lease import read_owner
from trajectile.run_folder.paths import RunFolder, write_atomic


class Stop(msgspec.Struct):
    """Why a start of the run (named by its lease's token) was stopped."""

    invocation: str
    message: str


def invocation(folder: RunFolder) -> str:
    """Return what names this start of the run, "" where a shard is run by hand."""
    owner = read_owner(folder.lease)
    return owner.token if owner else ""


def mark_stop(folder: RunFolder, message: str) -> bool:
    """Leave the marker for the shards that are still to come in this start; False where another shard was first."""
    if stopped(folder):
        return False
    write_atomic(folder.stop, msgspec.json.encode(Stop(invocation(folder), message)))
    return True


def stopped(folder: RunFolder) -> str:
    """Return why this start of the run was stopped, "" where it was not."""
    try:
        stop = msgspec.json.decode(folder.stop.read_bytes(), type=Stop)
    except (FileNotFoundError, msgspec.DecodeError):
        return ""
    return stop.message if stop.invocation and stop.invocation == invocation(folder) else ""
