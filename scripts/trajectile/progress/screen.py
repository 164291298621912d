"""Progress beside a child that writes to the same terminal: its lines go above the table."""

import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from rich.console import Console
from rich.text import Text

from trajectile.progress.watch import Lines, LiveTable, beside, on_terminal
from trajectile.run_folder.paths import RunFolder

BRIEF = ("--quiet", "rules", "progress")  # Snakemake's own account, by batch, would scroll past for hours
TALKATIVE = ("-q", "--quiet", "-p", "--printshellcmds", "--verbose")


class Screen:
    """What a child needs to know to share the terminal; without a console it writes to it directly."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console
        self.output = subprocess.PIPE if console else None
        self._thread: threading.Thread | None = None

    def options(self, arguments: Sequence[str]) -> tuple[str, ...]:
        """Return the options that make Snakemake brief, unless `arguments` say how much it is to tell."""
        return BRIEF if self._console and not set(TALKATIVE) & set(arguments) else ()

    def repeat(self, stream: IO[bytes] | None) -> None:
        """Print what the child says, line by line, above the table."""
        if stream and self._console:
            self._thread = threading.Thread(target=self._repeat, args=(stream, self._console), daemon=True)
            self._thread.start()

    def _repeat(self, stream: IO[bytes], console: Console) -> None:
        for line in stream:
            console.print(Text.from_ansi(line.decode(errors="replace")), soft_wrap=True)

    def close(self) -> None:
        if self._thread:
            self._thread.join()


@contextmanager
def screen(folder: RunFolder, begun: Callable[[], bool], *, shows: bool) -> Iterator[Screen]:
    """Show the progress of a run beside a child in the block, from when it has `begun`."""
    if not shows:
        yield Screen()
    elif not on_terminal():
        with beside(folder, Lines(), begun):
            yield Screen()
    else:
        console = Console(stderr=True)
        table = LiveTable(folder.root.name, console)
        shared = Screen(console)
        with table.live, beside(folder, table, begun):
            yield shared
            shared.close()
