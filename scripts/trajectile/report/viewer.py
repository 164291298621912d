"""Writes the viewer of a run: one page and its data beside it, in one pass over the rows."""

import shutil
from pathlib import Path
from typing import Any

import msgspec

from trajectile.report.assets import viewer_page
from trajectile.report.chunks import Chunks, Columns, write_script
from trajectile.rows import Trajectory
from trajectile.run_folder.paths import RunFolder, replace_file

ENCODER = msgspec.json.Encoder()
INDEX_ROWS = 1000
KEY_CHARACTERS = 16
TEXT_CHARACTERS, ANSWER_CHARACTERS = 400, 200
COMPLETED, PARTIAL, DISCARDED, SOME_REASONING, ALL_REASONING, FAILED_TOOL = (1 << bit for bit in range(6))


class Names:
    """Numbers names in the order in which they first appear."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))


class Viewer:
    """Takes rows by `add` into a folder of its own; `finish` puts it and the page in place of those that were."""

    def __init__(self, folder: RunFolder, stamp: str) -> None:
        self._page = folder.root / "viewer.html"
        self._data, self._new = folder.root / "viewer_data", folder.root / ".viewer_data.tmp"
        self._stamp, self._rows, self._pieces = stamp, 0, 0
        self._tools, self._ends, self._columns = Names(), Names(), Columns()
        shutil.rmtree(self._new, ignore_errors=True)
        self._new.mkdir(parents=True)
        self._chunks = Chunks(self._new, stamp)

    def add(self, row: Trajectory, reasons: list[str]) -> None:
        """Take a row and, where the filter took it out, the reasons."""
        columns, stats = self._columns, row.reasoning_stats
        chunk, at = self._chunks.add(ENCODER.encode(row))
        columns.key.append(key_of(row))
        columns.prompt.append(row.prompt_index)
        columns.batch.append(row.metadata.batch_num)
        columns.end.append(self._ends[row.end_reason])
        columns.flags.append(_flags(row, reasons))
        columns.turns.append(stats.total_assistant_turns)
        columns.tokens.append(row.usage.prompt_tokens + row.usage.completion_tokens)
        columns.cost.append(row.usage.cost)
        columns.seconds.append(row.metadata.duration_seconds)
        columns.tools.append(self._calls(row))
        columns.reasons.append(reasons)
        columns.chunk.append(chunk)
        columns.at.append(at)
        columns.text.append(first_text(row)[:TEXT_CHARACTERS])
        columns.answer.append(last_answer(row)[:ANSWER_CHARACTERS])
        self._rows += 1
        if len(columns.key) == INDEX_ROWS:
            self._write_index()

    def finish(self, about: dict[str, Any]) -> None:
        """Write what is left; `about` describes the run to the reader."""
        self._chunks.flush()
        self._write_index()
        names = {"tools": list(self._tools.numbers), "ends": list(self._ends.numbers)}
        sizes = {"rows": self._rows, "pieces": self._pieces, "chunks": self._chunks.count}
        write_script(self._new, self._stamp, "about", ENCODER.encode({**about, **names, **sizes}))
        _put(self._new, self._data)
        replace_file(self._page, viewer_page().encode())

    def discard(self) -> None:
        """Remove what was written so far."""
        shutil.rmtree(self._new, ignore_errors=True)

    def _write_index(self) -> None:
        if self._columns.key:
            write_script(self._new, self._stamp, f"index_{self._pieces}", ENCODER.encode(self._columns))
            self._pieces += 1
            self._columns = Columns()

    def _calls(self, row: Trajectory) -> list[int]:
        used = [(self._tools[name], stat.count, stat.failure) for name, stat in row.tool_stats.items() if stat.count]
        return [number for call in used for number in call]


def _flags(row: Trajectory, reasons: list[str]) -> int:
    stats = row.reasoning_stats
    failed = any(stat.failure for stat in row.tool_stats.values())
    return (
        COMPLETED * row.completed
        | PARTIAL * row.partial
        | DISCARDED * bool(reasons)
        | SOME_REASONING * (stats.turns_with_reasoning > 0)
        | ALL_REASONING * (0 < stats.total_assistant_turns <= stats.turns_with_reasoning)
        | FAILED_TOOL * failed
    )


def key_of(row: Trajectory) -> str:
    """Return what names a row in links to the viewer."""
    return f"{row.prompt_key[:KEY_CHARACTERS]}-{row.metadata.ordinal}"


def first_text(row: Trajectory) -> str:
    """Return the first human turn."""
    return next((turn.value for turn in row.conversations if turn.from_ == "human"), "")


def last_answer(row: Trajectory) -> str:
    return next((turn.value for turn in reversed(row.conversations) if turn.from_ == "gpt"), "")


def _put(new: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    new.replace(place)
