"""What a kill -9 can leave of a local sandbox: a bwrap that was told of no owner yet and waits for ever."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

PROGRAM = "bwrap"


def end_bwraps(folders: Sequence[Path]) -> None:
    """Kill the bubblewraps that were started for these scratch folders, whose owners are dead."""
    if not folders:
        return
    names = [f"{folder.absolute()}/" for folder in folders]
    for process in psutil.process_iter(["name", "cmdline"]):
        if process.info["name"] == PROGRAM and any(_names(word, names) for word in process.info["cmdline"] or ()):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.kill()


def _names(word: str, folders: list[str]) -> bool:
    return any(word.startswith(folder) for folder in folders)
