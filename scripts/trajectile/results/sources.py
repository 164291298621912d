"""The finished rows of a run, streamed from its batch files and journals, and read again by their place."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from trajectile.rows import Trajectory
from trajectile.run_folder.ids import Id, make_id
from trajectile.run_folder.journal import TRAJECTORY, decode, row_lines
from trajectile.run_folder.paths import RunFolder

OFFSET_BITS = 42
OPEN_FILES = 64


class Found(NamedTuple):
    """A finished row and where its line lies: `place` packs the number of the file and the offset in it."""

    row: Trajectory
    place: int
    length: int


class FinishedRows:
    """Each shard's batch file in numeric order, and after it the rows that only the shard's journal holds.

    Iterate once. Damaged lines are passed over and counted in `damaged`; `files` lists the files read so far,
    `ends` how far each was. What lies beyond `upto`, the `ends` of an earlier reading, came later and is left out.
    """

    def __init__(self, folder: RunFolder, upto: Mapping[str, int] | None = None) -> None:
        self.folder = folder
        self.files: list[Path] = []
        self.ends: dict[str, int] = {}
        self.damaged = 0
        self._upto = upto

    def __iter__(self) -> Iterator[Found]:
        for number in sorted({*self.folder.numbers(""), *self.folder.numbers("journal")}):
            seen: set[Id] = set()
            for found in self._shard(number):
                row_id = make_id(found.row.prompt_key, found.row.metadata.ordinal)
                if row_id not in seen:
                    seen.add(row_id)
                    yield found

    def _shard(self, number: int) -> Iterator[Found]:
        for path in (self.folder.batch(number), self.folder.journal(number)):
            start = len(self.files) << OFFSET_BITS
            self.files.append(path)
            name = self.name(start)
            end = None if self._upto is None else self._upto.get(name, 0)
            for offset, line in row_lines(path):
                if end is not None and offset + len(line) > end:
                    break
                self.ends[name] = offset + len(line)
                row = decode(line, TRAJECTORY)
                if row is not None:
                    yield Found(row, start + offset, len(line))
                elif line:
                    self.damaged += 1

    def name(self, place: int) -> str:
        """Return the file of a place, relative to the run folder."""
        return self.files[place >> OFFSET_BITS].relative_to(self.folder.root).as_posix()


def offset_of(place: int) -> int:
    return place & ((1 << OFFSET_BITS) - 1)


class PlaceReader:
    """Reads lines by their place, with at most OPEN_FILES files open: the longest open is closed first."""

    def __init__(self, files: list[Path]) -> None:
        self._files = files
        self._open: dict[int, int] = {}

    def read(self, place: int, length: int) -> bytes:
        return os.pread(self._descriptor(place >> OFFSET_BITS), length, offset_of(place))

    def _descriptor(self, file: int) -> int:
        if file not in self._open:
            if len(self._open) == OPEN_FILES:
                os.close(self._open.pop(next(iter(self._open))))
            self._open[file] = os.open(self._files[file], os.O_RDONLY)
        return self._open[file]

    def __enter__(self) -> "PlaceReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
