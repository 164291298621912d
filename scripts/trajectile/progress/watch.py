"""Shows how a run stands while it is made: a table on a terminal, else a line every half minute."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trajectile.console import say
from trajectile.progress.reader import RunReader
from trajectile.progress.standing import Standing
from trajectile.progress.words import clipped, one_line, rows
from trajectile.run_folder.paths import RunFolder

LINE_S = 30.0
TABLE_S = 1.0
BAR_WIDTH = 40
SHARE_OF_TIME = 0.05  # that looking may take: a run of 10,000 shards takes 0.3 s to look at


class Show(Protocol):
    """A way to show standings, and the seconds between them."""

    every_s: float

    def show(self, now: Standing) -> None: ...


class Lines:
    """One line for each standing that differs; an error is told once, until one of another kind comes."""

    def __init__(self, every_s: float = LINE_S) -> None:
        self.every_s = every_s
        self._line = self._kind = ""

    def show(self, now: Standing) -> None:
        line, kind = one_line(now), "".join(now.last_error.split(": ")[1:2])
        if line != self._line:
            say(line)
        if kind and kind != self._kind:
            say(f"last error: {clipped(now.last_error)}")
        self._line, self._kind = line, kind


class LiveTable:
    """A table that is drawn over and over at the bottom of a terminal."""

    every_s = TABLE_S

    def __init__(self, name: str, console: Console) -> None:
        self.name = name
        self.live = Live(console=console, auto_refresh=False)

    def show(self, now: Standing) -> None:
        table = Table(title=self.name, show_header=False, title_justify="left")
        table.add_row("", ProgressBar(total=max(now.prompts, 1), completed=now.done, width=BAR_WIDTH))
        for name, value in rows(now):
            table.add_row(name, Text(value))
        self.live.update(table, refresh=True)


def keep_showing(reader: RunReader, show: Show, ended: threading.Event, *, until_idle: bool = False) -> None:
    """Show how the run stands until `ended`, or until nobody makes it, and once more then."""
    over = False
    while not over:
        over = ended.is_set()
        began = time.monotonic()
        now = reader.read()
        took = time.monotonic() - began
        over = over or (until_idle and not now.owner)
        if now.prompts:
            show.show(now)
        if not over:
            ended.wait(max(show.every_s, took / SHARE_OF_TIME))


@contextmanager
def beside(folder: RunFolder, show: Show, begun: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Show how the run stands beside the block, which makes it; at its end too where `begun`."""
    ended = threading.Event()
    thread = threading.Thread(target=_show_from_first_pause, args=(folder, show, ended, begun), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _show_from_first_pause(folder: RunFolder, show: Show, ended: threading.Event, begun: Callable[[], bool]) -> None:
    ended.wait(show.every_s)
    while not begun():
        if ended.wait(show.every_s):
            return
    keep_showing(RunReader(folder), show, ended)


def on_terminal() -> bool:
    return sys.stdout.isatty() and sys.stderr.isatty()
