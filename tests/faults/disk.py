"""A small disk under a run folder, which fills up and is freed again. Needs the right to mount."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path

SIZE_MB = 24
CHUNK = b"\0" * (1 << 16)


class Disk:
    """The file system of a run folder; `mount` puts a tmpfs of SIZE_MB there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"
        self.is_mounted = False

    def mount(self) -> None:
        self.folder.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "trajectile-test", str(self.folder)]
        subprocess.run(command, check=True, capture_output=True)
        self.is_mounted = True

    def unmount(self) -> None:
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
            self.is_mounted = False

    def fill(self, leave: int) -> None:
        """Take all space but `leave` bytes."""
        with suppress(OSError), self._filler.open("wb", buffering=0) as file:
            while True:
                file.write(CHUNK)
        if leave:
            os.truncate(self._filler, max(0, self._filler.stat().st_size - leave))

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)


def mount_problem(folder: Path) -> str:
    """Say why no small disk can be mounted here, "" where one can."""
    disk = Disk(folder)
    try:
        disk.mount()
        disk.unmount()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"cannot mount a tmpfs: {error}"
    finally:
        with suppress(OSError):
            folder.rmdir()
    return ""
