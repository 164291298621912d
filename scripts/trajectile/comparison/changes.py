"""The prompts whose outcome differs between two runs, and the settings that do."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from trajectile.comparison.comparing import Comparison, Runs
from trajectile.comparison.pairs import ROW_NUMBERS, Places, RunRows
from trajectile.report.viewer import first_text, key_of
from trajectile.results.sources import PlaceReader
from trajectile.rows import Trajectory
from trajectile.run_folder.identity import Identity
from trajectile.run_folder.journal import TRAJECTORY

MOST_CHANGES = 200


class Changed(NamedTuple):
    """A prompt that one run completed and the other did not; `key` finds it in either viewer."""

    prompt: str
    key: str
    ends: tuple[str, str]
    better: str


def changed_prompts(runs: Runs, comparison: Comparison) -> tuple[int, list[Changed]]:
    """Return how many prompts only one run completed, and the first MOST_CHANGES of them in the order of run A."""
    own_a, own_b = comparison.pairs
    column = ROW_NUMBERS.index("completed")
    a, b = runs.a.numbers()[own_a, column], runs.b.numbers()[own_b, column]
    places = (a != b).nonzero()[0]
    return len(places), list(islice(_read(runs, own_a[places], own_b[places]), MOST_CHANGES))


def _read(runs: Runs, rows_a: Places, rows_b: Places) -> Iterator[Changed]:
    with PlaceReader(runs.a.finished.files) as reader_a, PlaceReader(runs.b.finished.files) as reader_b:
        for number_a, number_b in zip(rows_a.tolist(), rows_b.tolist(), strict=True):
            a, b = _row(runs.a, reader_a, number_a), _row(runs.b, reader_b, number_b)
            yield Changed(first_text(a), key_of(a), (a.end_reason, b.end_reason), "A" if a.completed else "B")


def _row(rows: RunRows, reader: PlaceReader, number: int) -> Trajectory:
    return TRAJECTORY.decode(reader.read(*rows.place(number)))


def differing_settings(a: Identity, b: Identity) -> list[tuple[str, Any, Any]]:
    """Return the settings that shape rows and differ, and the dataset where it does."""
    names = dict.fromkeys([*a.frozen, *b.frozen])
    found = [
        (name, a.frozen.get(name), b.frozen.get(name)) for name in names if a.frozen.get(name) != b.frozen.get(name)
    ]
    digests = a.dataset.get("sha256"), b.dataset.get("sha256")
    return found if digests[0] == digests[1] else [*found, ("dataset (SHA-256)", *digests)]
