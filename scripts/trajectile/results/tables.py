"""Prints the statistics of a run as tables; plain text where the output is not a terminal."""

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trajectile.results.shape import Statistics

Cells = tuple[object, ...]


def print_tables(statistics: Statistics, console: Console) -> None:
    """Print one table of tools and one of everything else, within the width of the console."""
    style = box.SIMPLE_HEAD if console.is_terminal else None
    tools = statistics.tool_statistics.items()
    used = sorted((item for item in tools if item[1].count), key=lambda item: -item[1].count)
    rows = [
        (name, tool.count, tool.success, tool.failure, percent(tool.success_rate), percent(tool.failure_rate))
        for name, tool in used
    ]
    console.print(_table(("tool", "calls", "success", "failure", "success rate", "failure rate"), rows, style))
    if not rows:
        console.print("no tool was called")
    console.print()
    console.print(_table((statistics.run_name, ""), summary(statistics), style))


def summary(statistics: Statistics) -> list[Cells]:
    """Return what is worth printing beside the tools: name and value of each line."""
    tokens, reasoning = statistics.tokens, statistics.reasoning_statistics
    return [
        ("prompts", prompts(statistics)),
        ("completed", statistics.completed),
        ("partial", statistics.partial),
        ("discarded", counted(statistics.discarded.total, statistics.discarded.by_reason)),
        ("failed", counted(statistics.failed.total, statistics.failed.by_kind)),
        ("failed attempts", statistics.attempts_failed),
        ("superseded", statistics.superseded),
        ("damaged lines", statistics.damaged_lines),
        ("ends", named(statistics.end_reasons)),
        (
            "reasoning",
            f"{percent(reasoning.coverage)} of {reasoning.total_assistant_turns:,} assistant turns",
        ),
        ("tokens", f"{tokens.prompt:,} prompt ({tokens.cached:,} cached), {tokens.completion:,} completion"),
        ("model calls", f"{statistics.api_calls:,}, cost {statistics.cost:,.4f}"),
        *([("trimmed results", statistics.trimmed_results)] if statistics.trimmed_results else []),
        ("seconds a prompt", percentiles(statistics.latency_seconds)),
        ("turns a prompt", percentiles(statistics.turns)),
        ("duration", f"{statistics.duration_seconds:,.1f} s"),
    ]


def prompts(statistics: Statistics) -> str:
    """Say how many prompts there are, and how many of them have no row."""
    given_up = f", {statistics.given_up:,} given up" if statistics.given_up else ""
    return f"{statistics.total_prompts:,}, {statistics.owed:,} owed{given_up}"


def percentiles(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {round(value, 3):,}" for name, value in values.items())


def counted(total: int, parts: dict[str, int]) -> str:
    """Return a total with its parts in brackets, as in `3 (timeout 2, rate_limit 1)`."""
    return f"{total:,} ({named(parts)})" if parts else f"{total:,}"


def named(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none"


def percent(fraction: float) -> str:
    return f"{fraction:.1%}"


def _table(columns: tuple[str, ...], rows: Iterable[Cells], style: box.Box | None) -> Table:
    table = Table(box=style, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if len(columns) == 2 or not number else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else str(cell)) for cell in row))
    return table
