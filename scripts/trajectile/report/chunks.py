"""Data files of the viewer: script files, because a page opened from disk may not fetch anything else.

Each calls `trajectile(stamp, name, text)`; `text` is JSON, deflated, in base64, so no row can end the script.
"""

import zlib
from base64 import b64encode
from pathlib import Path

import msgspec

LEVEL = 1  # a third of the size of the text for a fifth of the time of the default level
CHUNK_BYTES = 1 << 20  # of JSON; a page unpacks that in about 20 ms


def write_script(folder: Path, stamp: str, name: str, json: bytes) -> None:
    """Write one data file."""
    text = b64encode(zlib.compress(json, LEVEL))
    (folder / f"{name}.js").write_bytes(b'trajectile("%b","%b","%b")\n' % (stamp.encode(), name.encode(), text))


class Chunks:
    """Collects encoded rows and writes them in files of about CHUNK_BYTES; `count` files are begun."""

    def __init__(self, folder: Path, stamp: str) -> None:
        self.count = 0
        self._folder, self._stamp = folder, stamp
        self._rows: list[bytes] = []
        self._size = 0

    def add(self, row: bytes) -> tuple[int, int]:
        """Take a row as JSON and return its file and its place in there."""
        if self._size > CHUNK_BYTES:
            self.flush()
        self._rows.append(row)
        self._size += len(row)
        return self.count, len(self._rows) - 1

    def flush(self) -> None:
        if self._rows:
            write_script(self._folder, self._stamp, f"chunk_{self.count}", b"[" + b",".join(self._rows) + b"]")
            self.count += 1
            self._rows, self._size = [], 0


class Columns(msgspec.Struct):
    """A piece of the index, one entry a row in each list.

    `tools` holds (number of the tool, calls, failed calls) one after the other; `flags` are those of index.py.
    """

    key: list[str] = []
    prompt: list[int] = []
    batch: list[int] = []
    end: list[int] = []
    flags: list[int] = []
    turns: list[int] = []
    tokens: list[int] = []
    cost: list[float] = []
    seconds: list[float] = []
    tools: list[list[int]] = []
    reasons: list[list[str]] = []
    chunk: list[int] = []
    at: list[int] = []
    text: list[str] = []
    answer: list[str] = []
