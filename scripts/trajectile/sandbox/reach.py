"""What a container may reach of this machine: a network, and folders."""

from pathlib import PurePosixPath

from trajectile.errors import UserError
from trajectile.sandbox.guard import STATE


def network_mode(network: str) -> str:
    return "none" if network == "auto" else network


def binds(mounts: str) -> list[str]:
    """Return the user's mounts as the engine takes them; UserError where they make no sense."""
    return [_bind(mount.strip()) for mount in mounts.split(",") if mount.strip()]


def _bind(mount: str) -> str:
    here, _, place = mount.partition(":")
    there, _, mode = place.partition(":")
    if not (here.startswith("/") and there.startswith("/") and mode in ("", "ro", "rw")):
        raise UserError(f"sandbox_mounts: {mount!r} is not accepted; expected /here:/there, or with :rw after it")
    if PurePosixPath(there) in (PurePosixPath("/"), PurePosixPath(STATE)):
        raise UserError(f"sandbox_mounts: {mount!r}: nothing can be put there")
    return f"{here}:{there}:{mode or 'ro'}"
