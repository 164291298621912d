"""The failed attempts of a run, from the ledgers of all its shards."""

from array import array
from collections import Counter
from datetime import datetime
from typing import BinaryIO

import numpy as np

from trajectile.results.matching import Ints, Matcher
from trajectile.results.shape import Failed
from trajectile.results.sources import OFFSET_BITS, PlaceReader
from trajectile.run_folder.journal import FAILURE, decode, row_lines
from trajectile.run_folder.paths import RunFolder


class Failures:
    """All failed attempts in the order of time, in about 30 bytes each; damaged lines are counted in `damaged`."""

    def __init__(self, folder: RunFolder, matcher: Matcher) -> None:
        self.damaged = 0
        self.files = [folder.ledger(number) for number in folder.numbers("failures")]
        self._kinds: dict[str, int] = {}
        self._kind, self._time = array("I"), array("d")
        self._place, self._length = array("q"), array("I")
        for file in range(len(self.files)):
            self._read(file, matcher)
        self._prompt = matcher.exact()
        self._order = np.argsort(np.frombuffer(self._time), kind="stable")

    def __len__(self) -> int:
        return len(self._place)

    def _read(self, file: int, matcher: Matcher) -> None:
        for offset, line in row_lines(self.files[file]):
            failure = decode(line, FAILURE)
            if failure is None:
                self.damaged += bool(line)
                continue
            matcher.add(failure.prompt_key, failure.ordinal)
            self._kind.append(self._kinds.setdefault(failure.kind, len(self._kinds)))
            self._time.append(_seconds(failure.timestamp))
            self._place.append((file << OFFSET_BITS) + offset)
            self._length.append(len(line))

    def write(self, out: BinaryIO) -> None:
        """Write every failed attempt, the oldest first."""
        with PlaceReader(self.files) as reader:
            for number in self._order:
                out.write(reader.read(self._place[number], self._length[number]) + b"\n")

    def given_up(self, row_of_prompt: Ints, max_attempts: int) -> int:
        """Count the prompts without a row (-1 in `row_of_prompt`) that failed `max_attempts` times, 0 for no limit."""
        attempts = np.bincount(self._prompt[self._prompt >= 0], minlength=len(row_of_prompt))
        return int(((row_of_prompt < 0) & (attempts >= max_attempts)).sum()) if max_attempts else 0

    def of_unfinished(self, row_of_prompt: Ints) -> Failed:
        """Count the prompts without a row (-1 in `row_of_prompt`) that failed."""
        order = self._order[self._prompt[self._order] >= 0]
        last_kind = np.full(len(row_of_prompt), -1, np.int32)
        last_kind[self._prompt[order]] = np.frombuffer(self._kind, np.uint32)[order]
        last_kind = last_kind[(row_of_prompt < 0) & (last_kind >= 0)]
        counts = np.bincount(last_kind, minlength=len(self._kinds)).tolist()
        by_kind = Counter({kind: count for kind, count in zip(self._kinds, counts, strict=True) if count})
        return Failed(len(last_kind), dict(by_kind.most_common()))


def _seconds(timestamp: str) -> float:
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return 0.0
