"""Which rows are still prompts of the dataset, as a run's folder remembers it."""

from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

from trajectile.run_folder.ids import Id, Stamp, last_remembered, stamp_of
from trajectile.run_folder.paths import RunFolder


class Wanted:
    """Reads the remembered keys again only where they changed, or were never asked for a row before."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._stamp: Stamp | None = None
        self._known: dict[Id, bool] = {}

    def among(self, rows: AbstractSet[Id], dataset: Path) -> set[Id]:
        """Return those of some rows that are in the dataset, all of them where nothing of it is remembered."""
        if (stamp := self._stamp_of_keys(dataset)) != self._stamp:
            self._stamp, self._known = stamp, {}
        if new := set(rows - self._known.keys()):
            ids = last_remembered(self._folder, dataset)
            found = new.intersection(ids) if ids else new
            self._known |= {row: row in found for row in new}
        return {row for row in rows if self._known[row]}

    def _stamp_of_keys(self, dataset: Path) -> Stamp | None:
        with suppress(FileNotFoundError):
            return stamp_of(self._folder.keys(dataset))
        return None
