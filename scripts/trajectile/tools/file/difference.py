"""What a change did to a file, for the model to see."""

import difflib
import re
from collections.abc import Iterable
from itertools import takewhile

CONTEXT = 2
PAIRS_MAX = 1_000_000  # of lines to compare: so many take 0.2 s at the worst, in which the event loop waits
HUNK = re.compile(r"@@ -(\d+)(.*) \+(\d+)(.*) @@")


def diff(before: str, after: str, path: str) -> str:
    """A unified diff as valid text; "" where nothing changed.

    Where too much lies between the first change and the last, it says which lines those are.
    """
    if before == after:
        return ""
    old, new = before.split("\n"), after.split("\n")
    head = _alike(zip(old, new, strict=False))
    tail = _alike(zip(reversed(old[head:]), reversed(new[head:]), strict=False))
    lines = [f"--- a/{path}", f"+++ b/{path}", *_changes(old, new, head, tail)]
    return "\n".join(lines).encode("utf-8", "replace").decode("utf-8")


def _alike(pairs: Iterable[tuple[str, str]]) -> int:
    """How many of the first pairs are of equal lines."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _changes(old: list[str], new: list[str], head: int, tail: int) -> list[str]:
    old_end, new_end = len(old) - tail, len(new) - tail
    if (old_end - head) * (new_end - head) > PAIRS_MAX:
        return [f"[lines {head + 1}-{old_end} became lines {head + 1}-{new_end}: too many to show]"]
    start = max(0, head - CONTEXT)
    parts = old[start : old_end + CONTEXT], new[start : new_end + CONTEXT]
    return [_moved(line, start) for line in list(difflib.unified_diff(*parts, lineterm="", n=CONTEXT))[2:]]


def _moved(line: str, by: int) -> str:
    """A line of a diff whose hunks begin `by` lines further down."""
    if hunk := HUNK.fullmatch(line):
        return f"@@ -{int(hunk[1]) + by}{hunk[2]} +{int(hunk[3]) + by}{hunk[4]} @@"
    return line
