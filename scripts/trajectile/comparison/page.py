"""Writes a comparison as a page that needs nothing else: no server, no network, no script."""

from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from trajectile.comparison import wording
from trajectile.comparison.changes import Changed
from trajectile.comparison.comparing import Comparison, Line
from trajectile.run_folder.identity import Identity

PROMPT_CHARACTERS = 200
WIDTH, HEIGHT = 160, 18


class Side(NamedTuple):
    """One of the runs: its identity, and the link from the page to its viewer ("" where there is none)."""

    identity: Identity
    viewer: str


def page(
    sides: tuple[Side, Side],
    comparison: Comparison,
    settings: list[tuple[str, Any, Any]],
    changed: tuple[int, list[Changed]],
) -> str:
    """Return the page."""
    a, b = (side.identity for side in sides)
    parts = [
        f"<h1>{escape(a.run_name)} <span>and</span> {escape(b.run_name)}</h1>",
        f"<p>{escape(wording.heading(comparison))}.</p>",
        _table(("", "A", "B"), ((escape(name), escape(x), escape(y)) for name, x, y in _about(a, b, settings))),
        "<h2>Outcome</h2>",
        _table(("", "A", "B", "difference", "", ""), (_line(line) for line in comparison.lines)),
        "<h2>Tools</h2>",
        _table(("", "calls in A", "calls in B", "failed in A", "failed in B", "difference", ""), _tools(comparison)),
        "<h2>Ends</h2>",
        _table(("", "A", "B"), ((escape(end), f"{x:,}", f"{y:,}") for end, x, y in comparison.ends)),
        *_changes(sides, *changed),
        "<h2>How this was computed</h2>",
        *(f"<p>{escape(text)}</p>" for text in wording.method(comparison)),
    ]
    style = (files(__package__) / "page.css").read_text(encoding="utf-8")
    title = escape(f"{a.run_name} and {b.run_name}")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{style}</style></head><body>{chr(10).join(parts)}</body></html>\n"
    )


def _about(a: Identity, b: Identity, settings: list[tuple[str, Any, Any]]) -> list[tuple[str, str, str]]:
    shown = [("run", a.run_name, b.run_name), ("model", *(str(run.frozen.get("model", "")) for run in (a, b)))]
    rest = ((name, wording.setting(x), wording.setting(y)) for name, x, y in settings if name != "model")
    return [*shown, *rest]  # type: ignore[list-item]


def _line(line: Line) -> tuple[str, ...]:
    share = line.is_share
    return (
        escape(line.name),
        escape(wording.estimate(line.a, share)),
        escape(wording.estimate(line.b, share)),
        _difference(line),
        escape(wording.chance(line.p)),
        _picture(line),
    )


def _tools(comparison: Comparison) -> Iterable[tuple[str, ...]]:
    for (calls_a, calls_b), line in comparison.tools:
        head, a, b, difference, _, picture = _line(line)
        yield head, f"{calls_a:,}", f"{calls_b:,}", a, b, difference, picture


def _difference(line: Line) -> str:
    text = escape(wording.difference(line))
    return f"<b>{text}</b>" if line.difference.excludes_zero else text


def _picture(line: Line) -> str:
    """Draw the interval of a difference around zero, each line on its own scale."""
    value, low, high = line.difference
    reach = max(abs(low), abs(high))
    if not reach > 0:
        return ""
    x, left, right = (WIDTH / 2 * (1 + number / reach * 0.9) for number in (value, low, high))
    kind = "clear" if line.difference.excludes_zero else "open"
    return (
        f'<svg class="{kind}" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" aria-hidden="true">'
        f'<path class="zero" d="M{WIDTH / 2} 0V{HEIGHT}"/>'
        f'<path d="M{left:.1f} {HEIGHT / 2}H{right:.1f}"/><circle cx="{x:.1f}" cy="{HEIGHT / 2}" r="3.5"/></svg>'
    )


def _changes(sides: tuple[Side, Side], count: int, changed: list[Changed]) -> list[str]:
    if not count:
        return ["<h2>Prompts that only one run completed</h2><p>None.</p>"]
    note = f"<p>The first {len(changed)} of {count:,}.</p>" if len(changed) < count else ""
    rows = (
        (
            escape(one.prompt[:PROMPT_CHARACTERS]),
            f"<b>{one.better}</b>",
            *(_end(side, one.key, end) for side, end in zip(sides, one.ends, strict=True)),
        )
        for one in changed
    )
    table = _table(("prompt", "completed by", "end in A", "end in B"), rows, "prompts")
    return [f"<h2>Prompts that only one run completed</h2>{note}", table]


def _end(side: Side, key: str, end: str) -> str:
    return f'<a href="{escape(side.viewer)}#{key}">{escape(end)}</a>' if side.viewer else escape(end)


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]], kind: str = "") -> str:
    """Return a table; cells are HTML."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
