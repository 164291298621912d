"""The two kinds of picture: horizontal bars by name, and columns along an axis."""

from collections.abc import Sequence
from typing import NamedTuple

from trajectile.report.numbers import linear_ticks, short
from trajectile.report.svg import Drawing

WIDTH = 760
HEAD, BAR, PANEL, FOOT = 62, 26, 206, 34
LABEL_CHARACTERS = 26
MOST_BARS = 40
BLUE, ORANGE = "#2f74c0", "#e0662b"
KINDS = ("#e0662b", "#b03a5b", "#8a63c9", "#c9a227", "#3a9a7a", "#7f8a96")

Legend = Sequence[tuple[str, str]]


class Bar(NamedTuple):
    """A bar of several parts, in the order of the legend; `note` is written after it."""

    label: str
    parts: list[float]
    note: str


class Column(NamedTuple):
    """A column between two places of the axis (0 to 1), of several parts; `tip` is shown under the pointer."""

    left: float
    right: float
    parts: list[float]
    tip: str


class Panel(NamedTuple):
    """Columns over one axis; `ticks` and `marks` are places with their label, `colours` are those of the parts."""

    title: str
    columns: list[Column]
    ticks: list[tuple[float, str]]
    marks: Sequence[tuple[float, str]] = ()
    colours: tuple[str, ...] = (BLUE,)


def message(title: str, text: str) -> str:
    """Draw a picture that says in words why there is none."""
    drawing = Drawing(WIDTH, 90, title)
    drawing.text(20, 32, title, "title")
    drawing.text(20, 60, text)
    return drawing.svg()


def bars(title: str, subtitle: str, rows: list[Bar], legend: Legend) -> str:
    """Draw horizontal bars, at most MOST_BARS."""
    shown, left, width = rows[:MOST_BARS], 190, 400
    drawing = Drawing(WIDTH, HEAD + BAR * (len(shown) + (len(rows) > len(shown))) + 20, title)
    _head(drawing, title, subtitle, legend if len(legend) > 1 else ())
    longest = max((sum(row.parts) for row in shown), default=0) or 1
    for number, row in enumerate(shown):
        y, x = HEAD + number * BAR, float(left)
        drawing.text(left - 10, y + 17, _cut(row.label), anchor="end")
        for part, (name, colour) in zip(row.parts, legend, strict=True):
            drawing.rect(x, y + 4, width * part / longest, BAR - 8, colour, f"{row.label}: {part:g} {name}")
            x += width * part / longest
        drawing.text(x + 8, y + 17, row.note, "small")
    if len(rows) > len(shown):
        drawing.text(left, HEAD + len(shown) * BAR + 17, f"and {len(rows) - len(shown)} more", "small")
    return drawing.svg()


def panels(title: str, subtitle: str, parts: list[Panel], legend: Legend = ()) -> str:
    """Draw panels of columns, one below the other."""
    drawing = Drawing(WIDTH, HEAD + PANEL * len(parts), title)
    _head(drawing, title, subtitle, legend)
    for number, panel in enumerate(parts):
        _panel(drawing, panel, HEAD + number * PANEL)
    return drawing.svg()


def _head(drawing: Drawing, title: str, subtitle: str, legend: Legend) -> None:
    drawing.text(20, 28, title, "title")
    drawing.text(20, 48, subtitle, "small")
    width = sum(30 + 6.6 * len(name) for name, _ in legend)
    drawing.legend(WIDTH - 20 - width, 28, legend)


def _panel(drawing: Drawing, panel: Panel, top: float) -> None:
    left, width, bottom = 60, WIDTH - 90, top + PANEL - FOOT
    height = PANEL - FOOT - 40
    drawing.text(20, top + 12, panel.title)
    ticks = linear_ticks(max((sum(column.parts) for column in panel.columns), default=0), 4)
    for tick in ticks:
        y = bottom - height * tick / ticks[-1]
        drawing.line(left, y, left + width, y, "grid" if tick else "axis")
        drawing.text(left - 8, y + 4, short(tick), "small", "end")
    for column in panel.columns:
        _column(drawing, column, panel.colours, (left, width), (bottom, height / ticks[-1]))
    for place, label in panel.ticks:
        drawing.line(left + width * place, bottom, left + width * place, bottom + 4, "axis")
        drawing.text(left + width * place, bottom + 18, label, "small", "middle")
    for place, label in panel.marks:
        drawing.line(left + width * place, bottom - height, left + width * place, bottom, "mark")
        drawing.text(left + width * place, bottom - height - 3, label, "small", "middle")


def _column(
    drawing: Drawing, column: Column, colours: tuple[str, ...], axis: tuple[float, float], scale: tuple[float, float]
) -> None:
    (left, width), (y, unit) = axis, scale
    for part, colour in zip(column.parts, colours, strict=False):
        y -= part * unit
        if part:
            wide = width * (column.right - column.left)
            gap = min(1.0, wide / 4)
            drawing.rect(left + width * column.left + gap / 2, y, wide - gap, part * unit, colour, column.tip)


def _cut(label: str) -> str:
    return label if len(label) <= LABEL_CHARACTERS else label[: LABEL_CHARACTERS - 1] + "…"
