"""How exports reach the disk: a folder that appears whole, and a file of JSON lines for each split."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from trajectile.exports.selection import TRAIN
from trajectile.run_folder.journal import ENCODER
from trajectile.run_folder.paths import sync_folder


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Make a folder that takes the place of `path`, with all its files, when the block ends without error."""
    fresh, old = (path.with_name(f".{path.name}.{word}") for word in ("new", "old"))
    _remove(fresh)
    fresh.mkdir(parents=True)
    try:
        yield fresh
        _remove(old)
        if path.exists():
            path.rename(old)
        fresh.rename(path)
        sync_folder(path.parent)
    finally:
        _remove(fresh)
        _remove(old)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def close_durably(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
    file.close()


class SplitLines:
    """JSON Lines files, one for each split that has rows; the one of the training split is always there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, IO[bytes]] = {}
        self._line = bytearray()
        self._file(TRAIN)

    def _file(self, split: str) -> IO[bytes]:
        if split not in self._files:
            self._files[split] = (self._folder / f"{split}.jsonl").open("wb", buffering=1 << 20)
        return self._files[split]

    def write(self, split: str, record: Any) -> None:
        ENCODER.encode_into(record, self._line)
        self._line += b"\n"
        self._file(split).write(self._line)

    def close(self) -> list[str]:
        """Close the files and return the names of the splits."""
        for file in self._files.values():
            close_durably(file)
        return list(self._files)
