"""The command line's --status: how a run stands, read from its folder alone."""

import threading

import click

from trajectile.errors import UserError
from trajectile.run_folder.paths import RunFolder


def show_status(folder: RunFolder, *, watch: bool) -> None:
    """Print how a run stands; with `watch` again and again until nobody makes it."""
    from rich.console import Console

    from trajectile.progress.reader import RunReader
    from trajectile.progress.watch import Lines, LiveTable, keep_showing, on_terminal
    from trajectile.progress.words import rows

    if not folder.run_json.exists():
        raise UserError(f"run {folder.root.name} has not begun: {folder.run_json} is not there")
    reader = RunReader(folder)
    if not watch:
        for name, value in rows(reader.read()):
            click.echo(f"{name:24}{value}")
    elif not on_terminal():
        keep_showing(reader, Lines(), threading.Event(), until_idle=True)
    else:
        table = LiveTable(folder.root.name, Console(stderr=True))
        with table.live:
            keep_showing(reader, table, threading.Event(), until_idle=True)
