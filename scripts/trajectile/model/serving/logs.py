"""The log of a server: where its last start begins, what it said last, and how long it may become."""

import time
from contextlib import suppress
from pathlib import Path

TAIL_LINES = 15
TAIL_BYTES = 64 << 10
MARK = b"--- trajectile: "
LOG_BYTES = 32 << 20
HEAD_BYTES = 4 << 20


def begin_log(path: Path, words: str) -> None:
    """Note a start, so that the tail shows nothing that was said before it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    with path.open("ab") as file:
        file.write(MARK + f"{now} {words}\n".encode())


def log_tail(path: Path) -> str:
    """The last lines since the last start."""
    if not path.exists():
        return "(no output)"
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        said = file.read()
    before, mark, after = said.rpartition(MARK)
    lines = (after.partition(b"\n")[2] if mark else before or said).decode(errors="replace").splitlines()
    return "\n".join(lines[-TAIL_LINES:]) or "(no output)"


class BoundedLog:
    """Cuts the middle out of what a server says from now on, as often as it is more than LOG_BYTES.

    The server writes to the file itself, at its end wherever that is (O_APPEND), so nothing here can hold it up.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin = path.stat().st_size if path.exists() else 0

    def keep_short(self) -> None:
        """Keep the first HEAD_BYTES and the last TAIL_BYTES, where it has grown too long."""
        with suppress(OSError):
            size = self._path.stat().st_size
            if size > self._begin + LOG_BYTES:
                self._cut(size)

    def _cut(self, size: int) -> None:
        with self._path.open("r+b") as file:
            file.seek(size - TAIL_BYTES)
            tail = file.read(TAIL_BYTES)
            file.truncate(self._begin + HEAD_BYTES)
        with self._path.open("ab") as file:
            file.write(b"\n[trajectile: the log was too long, its middle was cut out here]\n" + tail)
