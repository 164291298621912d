"""Counts a whole run, merges its failure ledgers and writes its dataset card."""

from pathlib import Path

import click
import msgspec
from rich.console import Console
from trajectile.results.card import card
from trajectile.results.command import (
    Dataset,
    Step,
    dataset_file_option,
    max_samples_option,
    on_bad_row_option,
    read_identity,
    run_folder_option,
)
from trajectile.results.statistics import read_run, statistics_of
from trajectile.results.tables import print_tables
from trajectile.run_folder.paths import RunFolder, replacing, write_atomic


@click.command(cls=Step)
@run_folder_option
@dataset_file_option
@max_samples_option
@on_bad_row_option
def main(run_folder: Path, dataset_file: Path, max_samples: int, on_bad_row: str) -> None:
    """Write statistics.json, failures.jsonl and README.md (the dataset card), and print the statistics."""
    folder = RunFolder(run_folder)
    identity = read_identity(folder)
    reading = read_run(folder, Dataset(dataset_file, max_samples, on_bad_row), identity.tools)
    statistics = statistics_of(folder, identity, reading)
    with replacing(folder.failures) as out:
        reading.failures.write(out)
    write_atomic(folder.card, card(statistics, reading.names).encode())
    write_atomic(folder.statistics, msgspec.json.format(msgspec.json.encode(statistics)) + b"\n")
    print_tables(statistics, Console())


if __name__ == "__main__":
    main()
