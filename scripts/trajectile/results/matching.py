"""Matches finished rows to the prompts of a dataset, in arrays: about 90 bytes for a prompt and its row together."""

from array import array
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

KEY_BYTES = 16  # of the SHA-256; the odds of one collision among a million rows are 1 to 10**26

Ints = NDArray[np.int32]
Places = NDArray[np.int64]


class Matching(NamedTuple):
    """The row of each prompt in dataset order (-1: owed), and the rows that no prompt takes, sorted by key."""

    row_of_prompt: Ints
    superseded: Places


class Matcher:
    """Takes the keys of the dataset's prompts, then of other records, by `add`; forgets those once it has answered."""

    def __init__(self, prompt_keys: Iterable[str]) -> None:
        self._keys = bytearray()
        for key in prompt_keys:
            self._keys += bytes.fromhex(key[: 2 * KEY_BYTES])
        self.prompts = len(self._keys) // KEY_BYTES
        self._ordinals = array("I")

    def add(self, prompt_key: str, ordinal: int) -> None:
        self._keys += bytes.fromhex(prompt_key[: 2 * KEY_BYTES])
        self._ordinals.append(ordinal)

    def exact(self) -> Ints:
        """Return the prompt that each added record names by key and ordinal, -1 for none."""
        groups, ordinals = self._take()
        return _exact(groups[: self.prompts], groups[self.prompts :], ordinals)

    def match(self) -> Matching:
        """Give each prompt one added row: that of its key and ordinal, the first of several, else any of its key."""
        groups, ordinals = self._take()
        prompts, rows = groups[: self.prompts], groups[self.prompts :]
        row_of_prompt = _first_rows(len(prompts), _exact(prompts, rows, ordinals))
        _fill(row_of_prompt, prompts, rows)
        left = _unused(row_of_prompt, len(rows))
        return Matching(row_of_prompt, left[np.lexsort((ordinals[left], rows[left]))])

    def _take(self) -> tuple[Ints, NDArray[np.uint32]]:
        groups = _number(np.frombuffer(self._keys, np.uint64).reshape(-1, 2))
        ordinals = np.frombuffer(self._ordinals, np.uint32)
        self._ordinals = array("I")
        del self._keys[self.prompts * KEY_BYTES :]
        return groups, ordinals


def _number(keys: NDArray[np.uint64]) -> Ints:
    """Number the keys so that equal ones, and only those, have equal numbers."""
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    change = np.zeros(len(keys), bool)
    for half in (0, 1):
        ordered = keys[order, half]
        change[1:] |= ordered[1:] != ordered[:-1]
        del ordered
    numbers = np.empty(len(keys), np.int32)
    numbers[order] = np.cumsum(change, dtype=np.int32)
    return numbers


def _exact(prompts: Ints, rows: Ints, ordinals: NDArray[np.uint32]) -> Ints:
    """An ordinal is a prompt's place among its equals in dataset order."""
    order = np.argsort(prompts, kind="stable").astype(np.int32)
    groups = int(max(prompts.max(initial=-1), rows.max(initial=-1))) + 1
    ends = np.cumsum(np.bincount(prompts, minlength=groups), dtype=np.int32)
    starts = np.concatenate((np.zeros(1, np.int32), ends[:-1]))
    found = np.full(len(rows), -1, np.int32)
    known = np.flatnonzero(ordinals < (ends - starts)[rows])
    found[known] = order[starts[rows[known]] + ordinals[known]]
    return found


def _first_rows(prompts: int, prompt_of_row: Ints) -> Ints:
    row_of_prompt = np.full(prompts, -1, np.int32)
    backwards = np.flatnonzero(prompt_of_row >= 0)[::-1]  # of repeated indices the last assignment stays
    row_of_prompt[prompt_of_row[backwards]] = backwards
    return row_of_prompt


def _unused(row_of_prompt: Ints, rows: int) -> Places:
    unused = np.ones(rows, bool)
    unused[row_of_prompt[row_of_prompt >= 0]] = False
    return np.flatnonzero(unused)


def _fill(row_of_prompt: Ints, prompts: Ints, rows: Ints) -> None:
    """Give prompts without a row the rows that are left of the same key."""
    free, spare = np.flatnonzero(row_of_prompt < 0), _unused(row_of_prompt, len(rows))
    free, spare = _of_groups(free, prompts, rows[spare]), _of_groups(spare, rows, prompts[free])
    _, of_free, of_spare = np.intersect1d(
        _ranked(prompts[free]), _ranked(rows[spare]), assume_unique=True, return_indices=True
    )
    row_of_prompt[free[of_free]] = spare[of_spare]


def _of_groups(members: Places, groups: Ints, wanted: Ints) -> Places:
    """Return the members whose group is a wanted one, sorted by group."""
    is_wanted = np.zeros(int(max(groups.max(initial=-1), wanted.max(initial=-1))) + 1, bool)
    is_wanted[wanted] = True
    members = members[is_wanted[groups[members]]]
    return members[np.argsort(groups[members], kind="stable")]


def _ranked(groups: Ints) -> Places:
    """Turn sorted groups into one number each for (group, rank in the group)."""
    firsts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]][: len(groups)])
    rank = np.arange(len(groups)) - np.repeat(firsts, np.diff(np.append(firsts, len(groups))))
    return groups.astype(np.int64) << 32 | rank
