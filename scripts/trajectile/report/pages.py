"""The tables of the report as small pages: the numbers, the settings, where the run comes from."""

from collections.abc import Iterable
from html import escape
from typing import Any

import orjson

from trajectile.results.shape import Statistics
from trajectile.results.tables import summary
from trajectile.run_folder.identity import Identity

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>
body {{ font: 14px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: #1f2933; background: #fff;
  margin: 24px; max-width: 900px; }}
h1 {{ font-size: 18px; }} h2 {{ font-size: 15px; margin: 28px 0 6px; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; vertical-align: top; padding: 4px 12px 4px 0; border-bottom: 1px solid #e3e8ee; }}
th {{ font-weight: 500; color: #5b6875; width: 15em; }}
td {{ overflow-wrap: anywhere; white-space: pre-wrap; font-variant-numeric: tabular-nums; }}
</style></head><body><h1>{title}</h1>
{body}</body></html>
"""

Lines = Iterable[tuple[str, object]]


def numbers(statistics: Statistics, _: Identity) -> str:
    """The numbers of the run, as they are printed at its end."""
    return _page("Numbers", {"": summary(statistics)})  # type: ignore[dict-item]


def settings(_: Statistics, identity: Identity) -> str:
    """The settings of the run: those that shape its rows, the others, and the toolsets on offer."""
    free = {name: value for name, value in identity.settings.items() if name not in identity.frozen}
    chances = {name: f"{chance:g}%" for name, chance in identity.chances.items()}
    parts: dict[str, Lines] = {
        "Fixed for the run": identity.frozen.items(),
        "Free to change": free.items(),
        "Toolsets, with the chance that a prompt gets each": chances.items(),
    }
    return _page("Settings", parts)


def provenance(statistics: Statistics, identity: Identity) -> str:
    """Where the run comes from: dataset, code, versions, isolation, and the settings that earlier starts had."""
    parts: dict[str, Lines] = {
        "Run": [
            ("run_name", identity.run_name),
            ("created", identity.created),
            ("batches", statistics.total_batches),
            ("isolation of commands", identity.isolation),
            ("toolsets left out", ", ".join(identity.dropped_toolsets) or "none"),
            ("tools", ", ".join(identity.tools)),
        ],
        "Dataset": identity.dataset.items(),
        "Software": [*identity.versions.items(), ("git commit", identity.git_commit or "not a checkout")],
    }
    for digest, frozen in identity.history.items():
        if digest != identity.settings_digest:
            parts[f"Rows with settings_digest {digest} were made with"] = frozen.items()
    return _page("Provenance", parts)


def _page(title: str, parts: dict[str, Lines]) -> str:
    body = "".join(
        (f"<h2>{escape(head)}</h2>" if head else "")
        + "<table>"
        + "".join(f"<tr><th>{escape(name)}</th><td>{escape(_shown(value))}</td></tr>\n" for name, value in lines)
        + "</table>"
        for head, lines in parts.items()
    )
    return PAGE.format(title=title, body=body)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value or "–"
    return "–" if value is None else orjson.dumps(value).decode()


PAGES = {"numbers": numbers, "settings": settings, "provenance": provenance}
