"""The table of settings in config/README.md, made from their schema."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trajectile.configuration.schema import accepted, schema

BEGIN = "<!-- settings table: python -m trajectile.command_line.settings_table config/README.md -->"
END = "<!-- end of the settings table -->"


def settings_table() -> str:
    """Return the table of all settings as Markdown."""
    head = ["| setting | takes | default | fixed | what it is |", "|---|---|---|---|---|"]
    return "\n".join([*head, *_rows()])


def _rows() -> Iterator[str]:
    for name, entry in schema()["properties"].items():
        fixed = "host" if name == "base_url" else "yes" if entry.get("x-frozen") else ""
        cells = [f"`{name}`", accepted(entry), _default(entry["default"]), fixed, entry["description"]]
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"`{text}`" if text else "empty"


def with_table(text: str) -> str:
    """Return a document with a current table between its two marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{settings_table()}\n{END}{after}"


if __name__ == "__main__":
    import sys

    file = Path(sys.argv[1])
    file.write_text(with_table(file.read_text(encoding="utf-8")), encoding="utf-8")
