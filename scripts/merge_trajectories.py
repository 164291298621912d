"""Puts the finished rows of a run into one file, in dataset order and with the same keys in every row."""

from pathlib import Path

import click
from trajectile.results.command import (
    Dataset,
    dataset_file_option,
    max_samples_option,
    on_bad_row_option,
    read_identity,
    run_folder_option,
)
from trajectile.results.merge import merge, scan
from trajectile.run_folder.paths import RunFolder, replacing
from trajectile.step import Step


@click.command(cls=Step)
@run_folder_option
@dataset_file_option
@max_samples_option
@on_bad_row_option
@click.option(
    "--superseded_rows",
    type=click.Choice(["drop", "keep"]),
    default="drop",
    show_default=True,
    help="What becomes of finished rows whose prompt has left the dataset; kept ones come last.",
)
def main(run_folder: Path, dataset_file: Path, max_samples: int, on_bad_row: str, superseded_rows: str) -> None:
    """Write trajectories.jsonl: the rows that are not discarded, in dataset order."""
    folder = RunFolder(run_folder)
    dataset = Dataset(dataset_file, max_samples, on_bad_row)
    scanned = scan(folder, dataset, read_identity(folder).tools)
    with replacing(folder.trajectories) as out:
        merged = merge(scanned, dataset, out, keep_superseded=superseded_rows == "keep")
    click.echo(
        f"merge_trajectories: {merged.written:,} rows written, {merged.discarded:,} discarded, "
        f"{merged.superseded:,} superseded; prompts without a row: {merged.lacking:,}"
    )


if __name__ == "__main__":
    main()
