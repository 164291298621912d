"""Removes what dead owners left of a run: sandboxes, leases, the stop marker, half-written files; never results."""

from pathlib import Path

import msgspec

from trajectile.configuration.settings import Settings
from trajectile.errors import FatalError, UserError
from trajectile.notes import counted
from trajectile.run_folder.lease import living_owner
from trajectile.run_folder.paths import RunFolder, temporaries
from trajectile.sandbox.factory import make_backend


def clean(folder: RunFolder) -> list[str]:
    """Clean a run that nobody makes; return what was removed, in words. UserError where somebody does."""
    if not folder.root.is_dir():
        raise UserError(f"there is no run in {folder.root}")
    leases = [folder.lease, *map(folder.shard_lease, folder.numbers("journal", ".lease"))]
    for lease in leases:
        if owner := living_owner(lease):
            raise UserError(f"run {folder.root.name} is being made by {owner}. Wait for it, or end that process.")
    removed = [
        (_remove(leases), "stale lease"),
        (_remove([folder.stop]), "stop marker"),
        (_remove([path for path, _, _ in temporaries(folder.root)]), "half-written file"),
        (_reap(folder), "sandbox left behind"),
    ]
    return [counted(number, noun) for number, noun in removed if number]


def _remove(paths: list[Path]) -> int:
    there = [path for path in paths if path.exists()]
    for path in there:
        path.unlink(missing_ok=True)
    return len(there)


def _reap(folder: RunFolder) -> int:
    """Remove sandboxes with the backend that the run's last start used."""
    try:
        settings = msgspec.json.decode(folder.settings_json.read_bytes(), type=Settings)
    except (FileNotFoundError, msgspec.DecodeError):
        return 0
    backend = make_backend(settings, folder)
    try:
        return backend.reap()
    except FatalError as error:
        raise UserError(f"sandboxes could not be looked for: {error}") from None
    finally:
        backend.close()
