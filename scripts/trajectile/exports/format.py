"""What a format is: a writer that takes one example after the other, and words on how to load what it wrote."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, NamedTuple

import msgspec

from trajectile.exports.example import Example
from trajectile.exports.run import Run
from trajectile.exports.selection import Options
from trajectile.exports.writing import SplitLines
from trajectile.run_folder.paths import RunFolder


class Target(NamedTuple):
    """Where an export goes, and what it is made of."""

    folder: Path
    run_folder: RunFolder
    run: Run
    options: Options


class Counts(msgspec.Struct):
    """Rows of an export: read, written by split, left out and noted by reason."""

    rows_in: int = 0
    splits: dict[str, int] = {}
    left_out: dict[str, int] = {}
    noted: dict[str, int] = {}

    @property
    def rows_out(self) -> int:
        return sum(self.splits.values())


class Writer(ABC):
    """Writes one export. `name` is its folder, `load` one line on how to load it."""

    name: ClassVar[str]
    load: ClassVar[str]

    def __init__(self, target: Target) -> None:
        self.target = target

    @abstractmethod
    def add(self, example: Example, split: str) -> list[str]:
        """Write a row and return what is to be noted about it, words for counting; LeftOut where it does not fit."""

    @abstractmethod
    def finish(self, counts: Counts) -> None:
        """Write what stands beside the rows."""


class LineWriter(Writer):
    """A format of one JSON line a row."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.lines = SplitLines(target.folder)

    @abstractmethod
    def convert(self, example: Example) -> tuple[msgspec.Struct, list[str]]:
        """Return the line of a row, and what is to be noted about it."""

    @abstractmethod
    def describe(self, splits: list[str], counts: Counts) -> None:
        """Write what stands beside the lines."""

    def add(self, example: Example, split: str) -> list[str]:
        record, notes = self.convert(example)
        self.lines.write(split, record)
        return notes

    def finish(self, counts: Counts) -> None:
        self.describe(self.lines.close(), counts)
