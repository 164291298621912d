"""Makes the report and the viewer of a run in one pass over its rows."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from trajectile.errors import UserError
from trajectile.report.observed import Observed
from trajectile.report.pages import PAGES
from trajectile.report.pictures import PICTURES
from trajectile.report.viewer import Viewer
from trajectile.results.discarded import DiscardedRows
from trajectile.results.shape import Statistics
from trajectile.results.verdict import read_statistics
from trajectile.rows import Trajectory
from trajectile.run_folder.identity import Identity, read_identity
from trajectile.run_folder.journal import FAILURE, records
from trajectile.run_folder.paths import RunFolder, replace_file


class Report(NamedTuple):
    """What was made: rows in the viewer, files of the report."""

    rows: int
    files: int


def make_report(folder: RunFolder) -> Report:
    """Write report/*.svg, report/*.html, viewer.html and viewer_data/.

    UserError where the run has not begun or has no statistics, or where its files changed after the filter read them.
    """
    identity, statistics = read_identity(folder), read_statistics(folder)
    if identity is None:
        raise UserError(f"{folder.run_json} is missing: {folder.root} is not the folder of a run")
    observed = Observed()
    viewer = Viewer(folder, f"{folder.statistics.stat().st_mtime_ns:x}")
    try:
        for row, reasons in _rows(folder):
            observed.add(row)
            viewer.add(row, reasons)
        viewer.finish(_about(identity, statistics))
    finally:
        viewer.discard()
    for failure in records(folder.failures, FAILURE):
        observed.add_failure(failure)
    return Report(observed.rows, _write(folder, statistics, observed, identity))


def _rows(folder: RunFolder) -> Iterator[tuple[Trajectory, list[str]]]:
    discarded = DiscardedRows(folder)
    for row, place, _ in discarded.rows:
        yield row, discarded.reasons if discarded.takes(place) else []
    discarded.finish()


def _about(identity: Identity, statistics: Statistics) -> dict[str, Any]:
    return {
        "run_name": identity.run_name,
        "created": identity.created,
        "model": statistics.model,
        "distribution": statistics.distribution,
        "prompts": statistics.total_prompts,
        "owed": statistics.owed,
    }


def _write(folder: RunFolder, statistics: Statistics, observed: Observed, identity: Identity) -> int:
    made = {f"{name}.svg": draw(statistics, observed) for name, draw in PICTURES.items()}
    made |= {f"{name}.html": write(statistics, identity) for name, write in PAGES.items()}
    for name, text in made.items():
        replace_file(folder.root / "report" / name, text.encode())
    return len(made)
