"""Scratch folders whose names say who owns them, so that what a killed run left behind can be found."""

import contextlib
import itertools
import logging
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from trajectile.sandbox.ownership import Owner, this_process

_numbers = itertools.count()
log = logging.getLogger(__name__)


def unused(parent: Path) -> Path:
    """The path of a new folder in `parent`, named after this host and process."""
    return parent.absolute() / "-".join([*this_process(), str(next(_numbers))])


def remove(folder: Path) -> bool:
    """Remove a folder, whatever depth and permissions a command left in it; False, with a warning, where it stays."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
    if not folder.exists():
        return True
    subprocess.run(["chmod", "-R", "u+rwX", "--", str(folder)], stderr=subprocess.DEVNULL, check=False)
    done = subprocess.run(["rm", "-rf", "--", str(folder)], stderr=subprocess.PIPE, check=False)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").partition("\n")[0]
        log.warning("%s is left behind (%s): remove it as root, or as the user who owns what is in it", folder, reason)
    return not done.returncode


def reap(parent: Path, end: Callable[[Sequence[Path]], None] = lambda _: None) -> int:
    """Remove the scratch folders in `parent` whose owner ran on this host and is dead; how many went.

    `end` is given them first, to end what still runs there.
    """
    dead = [folder for folder in parent.glob("*") if _is_dead(folder.name)]
    end(dead)
    return sum(map(remove, dead))


def _is_dead(name: str) -> bool:
    words = name.rsplit("-", 3)
    return len(words) == 4 and Owner(*words[:3]).is_dead
