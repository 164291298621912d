"""The log of a server: where its last start begins, and what it said last."""

import time
from pathlib import Path

TAIL_LINES = 15
TAIL_BYTES = 64 << 10
MARK = b"--- trajectile: "


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
