"""Scratch folders whose names say who owns them, so that what a killed run left behind can be found."""

import contextlib
import itertools
import shutil
import subprocess
from pathlib import Path

from trajectile.sandbox.ownership import Owner, this_process

_numbers = itertools.count()


def unused(parent: Path) -> Path:
    """The path of a new folder in `parent`, named after this host and process."""
    return parent.absolute() / "-".join([*this_process(), str(next(_numbers))])


def remove(folder: Path) -> None:
    """Remove a folder, whatever depth and permissions a command left in it."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
    if folder.exists():
        subprocess.run(["chmod", "-R", "u+rwX", "--", str(folder)], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["rm", "-rf", "--", str(folder)], check=True)


def reap(parent: Path) -> int:
    """Remove the scratch folders in `parent` whose owner ran on this host and is dead; how many there were."""
    folders = dead(parent)
    for folder in folders:
        remove(folder)
    return len(folders)


def dead(parent: Path) -> list[Path]:
    """The scratch folders in `parent` whose owner ran on this host and is dead."""
    return [folder for folder in parent.glob("*") if _is_dead(folder.name)]


def _is_dead(name: str) -> bool:
    words = name.rsplit("-", 3)
    return len(words) == 4 and Owner(*words[:3]).is_dead
