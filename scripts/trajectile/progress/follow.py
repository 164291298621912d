"""Reads what files of a run folder gained since they were last looked at."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trajectile.run_folder.paths import shard_number

Stamp = tuple[int, int, int]  # inode, size, time of the last change


class Changes:
    """The numbered files of one folder with one suffix: which are new or changed, and which are gone."""

    def __init__(self, folder: Path, prefix: str, suffix: str) -> None:
        self.folder, self.prefix, self.suffix = folder, prefix, suffix
        self.known: dict[int, Stamp] = {}

    def changed(self) -> Iterator[tuple[int, Path]]:
        """Yield number and path of each file that is not as it was at the last call."""
        now = dict(self._stamps())
        before, self.known = self.known, now
        for number, stamp in now.items():
            if before.get(number) != stamp:
                yield number, self.folder / f"{self.prefix}{number}{self.suffix}"

    def _stamps(self) -> Iterator[tuple[int, Stamp]]:
        with suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                number = shard_number(entry.name, self.prefix, self.suffix)
                with suppress(FileNotFoundError):
                    if number is not None:
                        stat = entry.stat()
                        yield number, (stat.st_ino, stat.st_size, stat.st_mtime_ns)


class Lines:
    """The lines of a growing file that were not read before; a file that was replaced is read from its start."""

    def __init__(self) -> None:
        self._offset = self._inode = 0

    def read(self, path: Path) -> list[bytes]:
        """Return the whole lines that are new; a torn one waits for its end."""
        try:
            with path.open("rb") as file:
                stat = os.fstat(file.fileno())
                if stat.st_ino != self._inode or stat.st_size < self._offset:
                    self._offset, self._inode = 0, stat.st_ino
                file.seek(self._offset)
                whole, end, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        self._offset += len(whole) + len(end)
        return whole.split(b"\n") if end else []
