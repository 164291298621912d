"""Scratch folders whose names say who owns them, so that what a killed run left behind can be found."""

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
from pathlib import Path

_numbers = itertools.count()


def start_time(pid: int) -> str:
    """When a process started, as a word to compare (clock ticks since boot on Linux); empty when there is none."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    if Path("/proc/self/stat").exists():
        return ""
    shown = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return "".join(filter(str.isalnum, shown.stdout))


def unused(parent: Path) -> Path:
    """The path of a new folder in `parent`, named after this host and process."""
    pid = os.getpid()
    return parent.absolute() / f"{socket.gethostname()}-{pid}-{start_time(pid)}-{next(_numbers)}"


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
    host, *owner = name.rsplit("-", 3)
    if host != socket.gethostname() or len(owner) != 3 or not owner[0].isdigit():
        return False
    return start_time(int(owner[0])) != owner[1]
