"""Who works on the shards of a run now."""

from trajectile.run_folder.lease import Owner, living_owner
from trajectile.run_folder.paths import RunFolder


def living_shards(folder: RunFolder) -> dict[int, Owner]:
    """Return the living owner of each shard that has one."""
    numbers = folder.numbers("journal", ".lease")
    owners = {number: living_owner(folder.shard_lease(number)) for number in numbers}
    return {number: owner for number, owner in owners.items() if owner}
