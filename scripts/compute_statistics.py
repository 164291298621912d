"""Counts a whole run, merges its failure ledgers and writes its dataset card."""

from pathlib import Path

import click
import msgspec
from rich.console import Console
from trajectile.results.card import card
from trajectile.results.command import (
    Dataset,
    dataset_file_option,
    max_samples_option,
    on_bad_row_option,
    read_identity,
    run_folder_option,
)
from trajectile.results.statistics import read_run, statistics_of
from trajectile.results.tables import print_tables
from trajectile.run_folder.paths import RunFolder, replacing, write_atomic
from trajectile.step import Step


@click.command(cls=Step)
@run_folder_option
@dataset_file_option
@max_samples_option
@on_bad_row_option
@click.option("--max_attempts", type=click.IntRange(min=0), default=0, help="Prompts are given up then; 0 for never.")
def main(run_folder: Path, dataset_file: Path, max_samples: int, on_bad_row: str, max_attempts: int) -> None:
    """Write statistics.json, failures.jsonl and README.md (the dataset card), and print the statistics."""
    folder = RunFolder(run_folder)
    identity = read_identity(folder)
    reading = read_run(folder, Dataset(dataset_file, max_samples, on_bad_row), identity.tools)
    statistics = statistics_of(folder, identity, reading, max_attempts)
    with replacing(folder.failures) as out:
        reading.failures.write(out)
    write_atomic(folder.card, card(statistics, reading.names).encode())
    write_atomic(folder.statistics, msgspec.json.format(msgspec.json.encode(statistics)) + b"\n")
    print_tables(statistics, Console())


if __name__ == "__main__":
    main()
