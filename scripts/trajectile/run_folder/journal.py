"""Append-only JSON Lines files: journals of finished rows and ledgers of failed attempts."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from trajectile.rows import Ordinal, PromptKey, PromptRow, Trajectory
from trajectile.run_folder.paths import replace_file

READ_BUFFER = 1 << 16  # bytes; a third of the CPU of the default for rows of 10 KB

Record = TypeVar("Record", bound=msgspec.Struct)


class Failure(msgspec.Struct):
    """One failed attempt at a prompt; the prompt stays owed."""

    prompt_index: int
    prompt_key: PromptKey
    ordinal: Ordinal
    batch_num: int
    attempt: int
    kind: str
    message: str
    timestamp: str


ENCODER = msgspec.json.Encoder()
TRAJECTORY = msgspec.json.Decoder(Trajectory)
FAILURE = msgspec.json.Decoder(Failure)
PROMPT = msgspec.json.Decoder(PromptRow)


class Appender:
    """Appends whole lines; a torn last line of an earlier life is closed first.

    Lines of several tasks that wait at the same time share one flush to disk.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = path.open("ab+", buffering=0)
        self._flushing: asyncio.Task[None] | None = None
        self._written = self._flushed = 0
        self._heal()

    def _heal(self) -> None:
        size = self._file.seek(0, os.SEEK_END)
        if size:
            self._file.seek(size - 1)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")

    def write(self, line: bytes) -> None:
        """Hand a whole line to the operating system; of one that does not fit on the disk nothing stays."""
        start, rest = self._file.seek(0, os.SEEK_END), memoryview(line)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            self._file.truncate(start)
            raise
        self._written += 1
        self._stay()

    def _stay(self) -> None:
        """Put the file back where it was taken away: its rows are paid for. OSError where another took its place."""
        try:
            there = self._path.stat()
        except FileNotFoundError:
            self._file.seek(0)
            replace_file(self._path, self._file.read())
            with self._path.open("ab+", buffering=0) as again:
                os.dup2(again.fileno(), self._file.fileno(), inheritable=False)
            os.fdatasync(self._file.fileno())
        else:
            if not os.path.samestat(there, os.fstat(self._file.fileno())):
                raise OSError(f"{self._path} was replaced by another file while rows were appended to it")

    async def append(self, line: bytes) -> None:
        """Write an encoded line that is on disk when this returns."""
        self.write(line)
        mine = self._written
        while self._flushed < mine:
            self._flushing = self._flushing or asyncio.create_task(self._flush())
            await asyncio.shield(self._flushing)

    async def _flush(self) -> None:
        upto = self._written
        try:
            await asyncio.to_thread(os.fdatasync, self._file.fileno())
            self._flushed = upto
        finally:
            self._flushing = None

    def close(self) -> None:
        try:
            self._stay()
            os.fdatasync(self._file.fileno())
        finally:
            self._file.close()


def encode(record: msgspec.Struct) -> bytes:
    """Return a record as a line for `Appender.append`."""
    return ENCODER.encode(record) + b"\n"


def row_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (byte offset, line without its end) of each line of a file that may be absent; lines end at \\n alone."""
    try:
        file = path.open("rb", buffering=READ_BUFFER)
    except FileNotFoundError:
        return
    offset = 0
    with file:
        for line in file:
            yield offset, line.rstrip(b"\r\n")
            offset += len(line)


def records(path: Path, decoder: "msgspec.json.Decoder[Record]") -> Iterator[Record]:
    """Yield the records of a file, passing over torn or damaged lines: what they stood for is owed again."""
    for _, line in row_lines(path):
        record = decode(line, decoder)
        if record is not None:
            yield record


def decode(line: bytes, decoder: "msgspec.json.Decoder[Record]") -> Record | None:
    """Decode one line; None where it is damaged (or empty)."""
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
