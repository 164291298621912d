"""Turns dataset rows into prompts with a content key, and says which rows cannot be used and why."""

import hashlib
import json
import posixpath
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from trajectile.dataset_files import read_raw, unit_of
from trajectile.errors import UserError
from trajectile.ids import Ids, make_id
from trajectile.notes import Notes, refusal
from trajectile.raw_rows import NotJson, RawRow, loads
from trajectile.rows import PromptRow, Turn
from trajectile.starts import BadStart, start_turns

PROMPT_COLUMNS = ("prompt", "conversations", "messages")
PLACE_COLUMNS = frozenset({"image", "docker_image", "cwd"})


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
    notes = Notes() if notes is None else notes
    seen: Counter[str] = Counter()
    count = 0
    for index, raw in enumerate(read_raw(path)):
        if count == max_samples:
            break
        row = _prompt_row(index, raw, notes)
        if row is None:
            continue
        if ordinals:
            row.ordinal = seen[row.prompt_key]
            seen[row.prompt_key] += 1
        count += 1
        yield row
    if notes.bad and (on_bad_row == "error" or not count):
        raise UserError(refusal(path, notes, unit_of(path)))
    if not count:
        raise UserError(f"dataset_file: {path} holds no rows")


def _prompt_row(index: int, raw: RawRow, notes: Notes) -> PromptRow | None:
    notes.repaired += raw.repaired
    try:
        if raw.content is None:
            raise BadStart(raw.reason)
        row = _read(index, raw.content)
    except BadStart as error:
        notes.add_problem(raw.line, str(error))
        return None
    if row.image:
        notes.add_image(raw.line)
    return row


def _read(index: int, content: dict[str, Any]) -> PromptRow:
    column, start = _start(content)
    turns = start_turns(start)
    image = _text(content, "image") or _text(content, "docker_image")
    cwd = _text(content, "cwd")
    if cwd and posixpath.normpath(cwd.lstrip("/") or ".").split("/")[0] == "..":
        raise BadStart(f"cwd {cwd!r} leads out of the sandbox")
    others = {name: value for name, value in content.items() if name != column and name not in PLACE_COLUMNS}
    return PromptRow(index, prompt_key(start, turns, image, cwd), 0, turns, image, cwd, _source(others))


def _start(content: dict[str, Any]) -> tuple[str, Any]:
    """Return the column that holds the prompt, and what it holds."""
    present = [name for name in PROMPT_COLUMNS if name in content]
    if not present:
        raise BadStart(f"no prompt: its columns are {', '.join(map(repr, content)) or 'none'}")
    column = next((name for name in present if content[name] is not None), present[0])
    start = content[column]
    if column == "prompt" or not isinstance(start, str):
        return column, start
    try:  # a table holds turns as JSON text
        turns = loads(start.encode())[0]
    except NotJson:
        turns = None
    if not isinstance(turns, list):
        raise BadStart(f"{column} is a text, a list of turns was expected")
    return column, turns


def _source(others: dict[str, Any]) -> str:
    try:
        return orjson.dumps(others, default=str).decode()
    except TypeError:  # an integer beyond 64 bits, or hundreds of lists inside each other
        return json.dumps(others, default=str, ensure_ascii=False, separators=(",", ":"))


def _text(content: dict[str, Any], name: str) -> str:
    value = content.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or "\0" in value:
        raise BadStart(f"{name} is {value!r:.40}, a text was expected")
    return value


def prompt_key(start: Any, turns: list[Turn], image: str, cwd: str) -> str:
    """Return the SHA-256 (hex) of what defines the work: prompt text or canonical turns, image, cwd."""
    work = start if isinstance(start, str) else [_canonical(turn) for turn in turns]
    return hashlib.sha256(orjson.dumps([work, image, cwd])).hexdigest()


def _canonical(turn: Turn) -> list[Any]:
    calls = [[call.id, call.name, call.arguments] for call in turn.tool_calls]
    return [turn.from_, turn.value, turn.reasoning, calls, turn.tool_call_id, turn.name]


def read_ids(path: Path, *, on_bad_row: str, max_samples: int | None) -> Ids:
    """Return the identities of the usable rows in dataset order, the SHA-256 of the file, and what was noted."""
    notes = Notes()
    rows = read_prompts(path, on_bad_row=on_bad_row, max_samples=max_samples, notes=notes)
    ids = [make_id(row.prompt_key, row.ordinal) for row in rows]
    with path.open("rb") as file:
        return Ids(ids, hashlib.file_digest(file, "sha256").hexdigest(), notes)
