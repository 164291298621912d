"""Shards that found nothing to run on, and when that is the fault of the run rather than of a machine."""

from trajectile.run_folder.lease import Owner
from trajectile.run_folder.owners import living_shards
from trajectile.run_folder.paths import RunFolder
from trajectile.run_folder.stop import has_served

IN_A_ROW = 3


def stops_the_run(folder: RunFolder, owner: Owner) -> bool:
    """Note that a shard could not work on its owner's machine; tell whether others had better not try.

    One machine is all there is outside of a cluster, and nothing that failed there works a moment later, unless it
    worked before. In a cluster's jobs a machine may be at fault: three shards in a row must have failed, with no prompt
    finished in between, and none may be at work on a machine that has not failed.
    """
    folder.mishaps.parent.mkdir(parents=True, exist_ok=True)
    with folder.mishaps.open("a+") as file:
        file.write(f"{owner.host}\n")
        file.seek(0)
        failed = file.read().splitlines()
    enough = IN_A_ROW if owner.job_id or has_served(folder) else 1
    return len(failed) >= enough and {each.host for each in living_shards(folder).values()} <= set(failed)


def forget_mishaps(folder: RunFolder) -> None:
    """Begin to count anew: a prompt was finished, or the run is started again."""
    folder.mishaps.unlink(missing_ok=True)
