"""Makes the pictures and tables of the report, and the viewer, of a run.

The rows are read from batch files and journals, so it also serves a run that was stopped, once it is collected.

Example: python scripts/make_report.py --run_folder data/first_run
"""

from pathlib import Path

import click
from trajectile.report.building import make_report
from trajectile.results.command import run_folder_option
from trajectile.run_folder.paths import RunFolder
from trajectile.step import Step


@click.command(cls=Step, help=__doc__)
@run_folder_option
def main(run_folder: Path) -> None:
    folder = RunFolder(run_folder)
    made = make_report(folder)
    click.echo(
        f"make_report: {made.files} files in {run_folder / 'report'}, {made.rows} rows in {run_folder / 'viewer.html'}"
    )


if __name__ == "__main__":
    main()
