"""A dataset in a user's hands: written once, then changed in all the ways that people change files."""

import itertools
import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ODD = ("", " “quoted”", " with a line\u2028separator", " 🙂", " \\n", " ünïcode", ' {"json": 1}')
FEW, MANY = 16, 40


class Dataset:
    """`rows` is what the file at `path` holds; `shrunk` names the prompts that once had more copies than later."""

    def __init__(self, path: Path, rng: random.Random) -> None:
        self.path, self.rng = path, rng
        self._numbers = itertools.count()
        self.rows = [self._fresh() for _ in range(rng.randint(18, 28))]
        self.rows += [dict(rng.choice(self.rows)) for _ in range(rng.randint(0, 5))]
        self.shrunk: set[str] = set()
        self._past: list[list[dict[str, Any]]] = []
        self.save()

    @property
    def prompts(self) -> Counter[str]:
        return Counter(row["prompt"] for row in self.rows)

    def save(self, **spelling: Any) -> None:
        lines = "".join(json.dumps(row, **spelling) + "\n" for row in self.rows)
        self.path.write_text(lines, encoding="utf-8")

    def change(self) -> str:
        """Do one thing that people do to datasets, and return its name."""
        before = self.prompts
        self._past.append(list(self.rows))
        habit = self.rng.choice(HABITS)
        habit(self)
        self.shrunk |= {prompt for prompt, count in before.items() if count > 1 and self.prompts[prompt] < count}
        return habit.__name__

    def grow(self) -> None:
        """Add prompts, so that there is something to run."""
        self._past.append(list(self.rows))
        self.rows += [self._fresh() for _ in range(6)]
        self.save()

    def _fresh(self) -> dict[str, Any]:
        number = next(self._numbers)
        return {"prompt": f"prompt {number}{self.rng.choice(ODD)}", "id": number}


def reorder(data: Dataset) -> None:
    data.rng.shuffle(data.rows)
    data.save()


def append(data: Dataset) -> None:
    if len(data.rows) < MANY:
        data.rows += [data._fresh() for _ in range(data.rng.randint(1, 4))]
    data.save()


def put_in_front(data: Dataset) -> None:
    if len(data.rows) < MANY:
        data.rows = [data._fresh() for _ in range(2)] + data.rows
    data.save()


def edit(data: Dataset) -> None:
    for row in data.rng.sample(data.rows, 2):
        data.rows[data.rows.index(row)] = {**row, "prompt": row["prompt"] + " (edited)"}
    data.save()


def duplicate(data: Dataset) -> None:
    if len(data.rows) < MANY:
        copies = [dict(row) for row in data.rng.choices(data.rows, k=3)]
        data.rows = data.rows + copies if data.rng.random() < 0.5 else copies + data.rows
    data.save()


def drop(data: Dataset) -> None:
    if len(data.rows) > FEW:
        data.rows = data.rng.sample(data.rows, len(data.rows) - 3)
    data.save()


def go_back(data: Dataset) -> None:
    """Undo: rows that had left the dataset are wanted again."""
    data.rows = list(data.rng.choice(data._past))
    data.save()


def other_columns(data: Dataset) -> None:
    data.rows = [{**row, "note": data.rng.randint(0, 9)} for row in data.rows]
    data.save()


def respell(data: Dataset) -> None:
    """The same rows in other bytes: escapes and key order."""
    data.rows = [dict(reversed(row.items())) for row in data.rows]
    data.save(ensure_ascii=False, separators=(",", ":"))


def touch(data: Dataset) -> None:
    os.utime(data.path)


def clone(data: Dataset) -> None:
    content = data.path.read_bytes()
    data.path.unlink()
    data.path.write_bytes(content)


HABITS: tuple[Callable[[Dataset], None], ...] = (
    *(reorder, append, put_in_front, edit, duplicate, drop),
    *(go_back, other_columns, respell, touch, clone),
)
