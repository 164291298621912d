"""What reading a dataset found besides its prompts."""

from pathlib import Path
from typing import NamedTuple

import msgspec

LISTED = 10_000
SHOWN = 1000


class Problem(NamedTuple):
    """A row that cannot be used, by its line (or row) number from 1."""

    line: int
    reason: str


class Notes(msgspec.Struct):
    """`bad` rows cannot be used, the first of them are listed in `problems`; `repaired` counts replaced surrogates.

    `images` rows name an image, the first of them in line `image_line`.
    """

    problems: list[Problem] = []
    bad: int = 0
    repaired: int = 0
    images: int = 0
    image_line: int = 0

    def add_problem(self, line: int, reason: str) -> None:
        self.bad += 1
        if len(self.problems) < LISTED:
            self.problems.append(Problem(line, reason))

    def add_image(self, line: int) -> None:
        self.images += 1
        self.image_line = self.image_line or line


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is not one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listing(notes: Notes, unit: str, shown: int = SHOWN) -> list[str]:
    """Return a line of text for each of the first bad rows, and how many more there are."""
    lines = [f"  {unit} {problem.line}: {problem.reason}" for problem in notes.problems[:shown]]
    return [*lines, f"  … and {notes.bad - shown:,} more"] if notes.bad > shown else lines


def refusal(path: Path, notes: Notes, unit: str, *, others: bool) -> str:
    """Say which rows cannot be used, and what to do about them; `others` tells whether any row can."""
    head = f"dataset_file: {path}: {counted(notes.bad, 'row')} cannot be used:"
    advice = "Mend them, or set on_bad_row to skip to run the others." if others else "Mend them: there are no others."
    return "\n".join([head, *listing(notes, unit), advice])


def remarks(notes: Notes, unit: str) -> list[str]:
    """Return what the user should know at the start of a run, a sentence each."""
    found = []
    if notes.bad:
        found.append(
            f"{counted(notes.bad, 'row')} of the dataset cannot be used and will be left out (on_bad_row: skip):\n"
            + "\n".join(listing(notes, unit))
        )
    if notes.repaired:
        found.append(f"{counted(notes.repaired, 'lone surrogate')} in the dataset replaced by U+FFFD")
    return found
