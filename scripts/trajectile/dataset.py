"""Turns dataset rows into prompts with a content key, and says which rows cannot be used and why."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from trajectile.dataset_files import RawRow, read_raw
from trajectile.errors import UserError
from trajectile.ids import Ids, make_id
from trajectile.rows import PromptRow, Turn
from trajectile.starts import BadStart, start_turns

PROMPT_COLUMNS = ("prompt", "conversations", "messages")
WORK_COLUMNS = frozenset((*PROMPT_COLUMNS, "image", "docker_image", "cwd"))
PROBLEMS_SHOWN = 20


class Problem(NamedTuple):
    """A row that cannot be used, by its line number from 1."""

    line: int
    reason: str


def read_prompts(
    path: Path,
    *,
    on_bad_row: str = "error",
    max_samples: int | None = None,
    problems: list[Problem] | None = None,
    ordinals: bool = True,
) -> Iterator[PromptRow]:
    """Yield the usable rows of a dataset in its order, the first `max_samples` of them.

    Bad rows are added to `problems`; with `on_bad_row="error"` a UserError that lists them ends the reading.
    `ordinals=False` leaves each ordinal 0 and needs no memory that grows with the dataset.
    """
    problems = [] if problems is None else problems
    seen: Counter[str] = Counter()
    count = 0
    for index, raw in enumerate(read_raw(path)):
        if count == max_samples:
            break
        row = _prompt_row(index, raw, problems)
        if row is None:
            continue
        if ordinals:
            row.ordinal = seen[row.prompt_key]
            seen[row.prompt_key] += 1
        count += 1
        yield row
    if problems and on_bad_row == "error":
        raise UserError(_report(path, problems))


def _prompt_row(index: int, raw: RawRow, problems: list[Problem]) -> PromptRow | None:
    try:
        if raw.content is None:
            raise BadStart(raw.reason)
        return _read(index, raw.content)
    except BadStart as error:
        problems.append(Problem(raw.line, str(error)))
        return None


def _read(index: int, content: dict[str, Any]) -> PromptRow:
    present = [content[name] for name in PROMPT_COLUMNS if name in content]
    if not present:
        raise BadStart(f"no prompt: its columns are {', '.join(map(repr, content)) or 'none'}")
    start = next((value for value in present if value is not None), None)
    turns = start_turns(start)
    image = _text(content, "image") or _text(content, "docker_image")
    cwd = _text(content, "cwd")
    others = {name: value for name, value in content.items() if name not in WORK_COLUMNS}
    return PromptRow(index, prompt_key(start, turns, image, cwd), 0, turns, image, cwd, _source(others))


def _source(others: dict[str, Any]) -> str:
    try:
        return orjson.dumps(others, default=str).decode()
    except TypeError:  # an integer beyond 64 bits
        return json.dumps(others, default=str, ensure_ascii=False, separators=(",", ":"))


def _text(content: dict[str, Any], name: str) -> str:
    value = content.get(name) or ""
    if not isinstance(value, str):
        raise BadStart(f"{name} is {value!r}, a text was expected")
    return value


def prompt_key(start: Any, turns: list[Turn], image: str, cwd: str) -> str:
    """Return the SHA-256 (hex) of what defines the work: prompt text or canonical turns, image, cwd."""
    work = start if isinstance(start, str) else [_canonical(turn) for turn in turns]
    return hashlib.sha256(orjson.dumps([work, image, cwd])).hexdigest()


def _canonical(turn: Turn) -> list[Any]:
    calls = [[call.id, call.name, call.arguments] for call in turn.tool_calls]
    return [turn.from_, turn.value, turn.reasoning, calls, turn.tool_call_id, turn.name]


def _report(path: Path, problems: list[Problem]) -> str:
    shown = [f"  line {problem.line}: {problem.reason}" for problem in problems[:PROBLEMS_SHOWN]]
    if len(problems) > PROBLEMS_SHOWN:
        shown.append(f"  … and {len(problems) - PROBLEMS_SHOWN} more")
    head = f"{path}: {len(problems)} rows cannot be used. Mend them, or set on_bad_row: skip to run the others."
    return "\n".join([head, *shown])


def read_ids(path: Path, *, on_bad_row: str, max_samples: int | None) -> Ids:
    """Return the identities of the usable rows in dataset order, and the SHA-256 of the file."""
    rows = read_prompts(path, on_bad_row=on_bad_row, max_samples=max_samples)
    ids = [make_id(row.prompt_key, row.ordinal) for row in rows]
    with path.open("rb") as file:
        return Ids(ids, hashlib.file_digest(file, "sha256").hexdigest())
