"""Files that tools leave in the sandbox."""

import posixpath
from collections import Counter

from trajectile.sandbox.base import Sandbox
from trajectile.sandbox.shell import quote_path

FILE_TIMEOUT_S = 60.0


class FileNames:
    """Names for files that the model names not, numbered within the prompt."""

    def __init__(self) -> None:
        self._given: Counter[str] = Counter()

    def next(self, stem: str, suffix: str) -> str:
        self._given[stem] += 1
        return f"{stem}_{self._given[stem]}{suffix}"

    async def close(self) -> None:
        """Nothing is kept open."""


async def save(sandbox: Sandbox, path: str, data: bytes) -> None:
    """Write a file, making the folders that are missing; OSError as write_file."""
    try:
        await sandbox.write_file(path, data)
    except FileNotFoundError:
        folder = posixpath.dirname(path)
        await sandbox.exec(f"command -p mkdir -p -- {quote_path(folder)}", timeout_s=FILE_TIMEOUT_S, persist=False)
        await sandbox.write_file(path, data)
