"""Prints a comparison as tables."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trajectile.comparison import wording
from trajectile.comparison.comparing import Comparison, Line


def print_comparison(comparison: Comparison, settings: list[tuple[str, object, object]], console: Console) -> None:
    """Print what differs in the settings, the quantities, the tools and the ends, within the width of the console."""
    console.print(wording.heading(comparison), highlight=False)
    if settings:
        rows = [(name, wording.setting(a), wording.setting(b)) for name, a, b in settings]
        _print(console, ("setting", "A", "B"), rows)
    head = ("", "A", "B", "difference", "")
    _print(console, head, [_cells(line) for line in comparison.lines], [_bold(line) for line in comparison.lines])
    tools = [(tool.failed.name, *map(str, tool.calls), *_cells(tool.failed)[1:4]) for tool in comparison.tools]
    columns = ("tool", "calls A", "calls B", "failed A", "failed B", "difference")
    _print(console, columns, tools, [_bold(tool.failed) for tool in comparison.tools])
    _print(console, ("end", "A", "B"), [(end, str(a), str(b)) for end, a, b in comparison.ends])
    for line in wording.method(comparison):
        console.print(line, highlight=False)


def _cells(line: Line) -> tuple[str, ...]:
    share = line.is_share
    return (
        line.name,
        wording.estimate(line.a, share),
        wording.estimate(line.b, share),
        wording.difference(line),
        wording.chance(line.p),
    )


def _bold(line: Line) -> bool:
    return line.difference.excludes_zero


def _print(
    console: Console, columns: Sequence[str], rows: Iterable[tuple[str, ...]], bold: Sequence[bool] = ()
) -> None:
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(Text(column), justify="right" if number else "left", overflow="fold")
    for number, row in enumerate(rows):
        table.add_row(*(Text(cell) for cell in row), style="bold" if number < len(bold) and bold[number] else "")
    console.print(table)
    console.print()
