"""Shards that found nothing to run on, and when that is the fault of the run rather than of a machine."""

import msgspec

from trajectile.run_folder.journal import decode, encode, row_lines
from trajectile.run_folder.lease import Owner
from trajectile.run_folder.owners import living_shards
from trajectile.run_folder.paths import RunFolder
from trajectile.run_folder.stop import has_served, invocation

IN_A_ROW = 3


class Mishap(msgspec.Struct):
    """In a start of the run, a machine had no sandbox or no model server."""

    start: str
    host: str


MISHAP = msgspec.json.Decoder(Mishap)


def stops_the_run(folder: RunFolder, owner: Owner) -> bool:
    """Note that a shard could not work on its owner's machine; tell whether others had better not try.

    One machine is all there is outside of a cluster, and nothing that failed there works a moment later, unless it
    worked before. In a cluster's jobs a machine may be at fault: three shards in a row must have failed, with no prompt
    finished in between, and none may be at work on a machine that has not failed.
    """
    _note(folder, owner)
    failed = [mishap.host for mishap in _mishaps(folder)]
    enough = IN_A_ROW if owner.job_id or has_served(folder) else 1
    return len(failed) >= enough and {each.host for each in living_shards(folder).values()} <= set(failed)


def forget_mishaps(folder: RunFolder) -> None:
    """A prompt was finished."""
    folder.mishaps.unlink(missing_ok=True)


def _note(folder: RunFolder, owner: Owner) -> None:
    folder.mishaps.parent.mkdir(parents=True, exist_ok=True)
    with folder.mishaps.open("ab") as file:
        file.write(encode(Mishap(invocation(folder), owner.host)))


def _mishaps(folder: RunFolder) -> list[Mishap]:
    found = (decode(line, MISHAP) for _, line in row_lines(folder.mishaps))
    return [mishap for mishap in found if mishap and mishap.start == invocation(folder)]
