"""Turns dataset rows into prompts with a content key, and says which rows cannot be used and why."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from trajectile.dataset.files import read_raw, unit_of
from trajectile.dataset.starts import BadStart
from trajectile.dataset.work import PLACE_COLUMNS, Work, work_of
from trajectile.errors import UserError
from trajectile.notes import Notes, refusal
from trajectile.rows import PromptRow
from trajectile.run_folder.ids import Ids, id_of, stamp_of


def read_prompts(
    path: Path,
    *,
    on_bad_row: str = "error",
    max_samples: int | None = None,
    notes: Notes | None = None,
    ordinals: bool = True,
) -> Iterator[PromptRow]:
    """Yield the usable rows of a dataset in its order, the first `max_samples` of them.

    `notes` is told of bad rows; a UserError that lists them ends the reading where `on_bad_row` is "error" or there is
    no usable row. `ordinals=False` leaves each ordinal 0 and needs no memory that grows with the dataset.
    """
    seen: dict[bytes, int] = {}
    for index, content, work in _usable(path, on_bad_row, max_samples, Notes() if notes is None else notes):
        key, ordinal = work.digest(), 0
        if ordinals:
            ordinal = seen.get(key, 0)
            seen[key] = ordinal + 1
        yield PromptRow(index, key.hex(), ordinal, work.turns, work.image, work.cwd, _source(content, work.column))


def read_ids(path: Path, *, on_bad_row: str, max_samples: int | None) -> Ids:
    """Return the identities of the usable rows in dataset order, the SHA-256 of the file, and what was noted.

    A UserError refuses a file without rows.
    """
    notes, ids = Notes(), []
    seen: dict[bytes, int] = {}
    stamp = stamp_of(path) if path.is_file() else None
    for _, _, work in _usable(path, on_bad_row, max_samples, notes):
        key = work.digest()
        ordinal = seen.get(key, 0)
        seen[key] = ordinal + 1
        ids.append(id_of(key, ordinal))
    if not ids:
        raise UserError(f"dataset_file: {path} holds no rows")
    with path.open("rb") as file:
        return Ids(ids, hashlib.file_digest(file, "sha256").hexdigest(), notes, stamp)


def _usable(
    path: Path, on_bad_row: str, max_samples: int | None, notes: Notes
) -> Iterator[tuple[int, dict[str, Any], Work]]:
    """Yield (index, content, work) of the usable rows."""
    count = 0
    for index, raw in enumerate(read_raw(path)):
        if count == max_samples:
            break
        notes.repaired += raw.repaired
        try:
            if raw.content is None:
                raise BadStart(raw.reason)
            work = work_of(raw.content)
        except BadStart as error:
            notes.add_problem(raw.line, str(error))
            continue
        if work.image:
            notes.add_image(raw.line)
        count += 1
        yield index, raw.content, work
    if notes.bad and (on_bad_row == "error" or not count):
        raise UserError(refusal(path, notes, unit_of(path), others=bool(count)))


def _source(content: dict[str, Any], column: str) -> str:
    others = {name: value for name, value in content.items() if name != column and name not in PLACE_COLUMNS}
    try:
        return orjson.dumps(others, default=str).decode()
    except TypeError:  # an integer beyond 64 bits, or hundreds of lists inside each other
        return json.dumps(others, default=str, ensure_ascii=False, separators=(",", ":"))
