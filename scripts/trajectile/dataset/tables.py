"""Reads datasets that are tables: .csv and .parquet."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trajectile.dataset.raw_rows import RawRow
from trajectile.errors import UserError
from trajectile.notes import counted

LARGEST_CELL = 1 << 30  # characters
ROWS_AT_ONCE = 256


def csv_rows(path: Path) -> Iterator[RawRow]:
    """Yield the rows of a CSV file with a header, each under the line it begins on."""
    csv.field_size_limit(LARGEST_CELL)
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            names = _header(path, next(reader, []))
            line = reader.line_num + 1
            for cells in reader:
                if cells:
                    yield _csv_row(line, names, cells)
                line = reader.line_num + 1
        except csv.Error as error:
            raise UserError(f"dataset_file: {path}, line {reader.line_num}: not CSV: {error}") from None


def _header(path: Path, names: list[str]) -> list[str]:
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise UserError(f"dataset_file: {path}: the column {twice[0]!r} is there twice")
    return names


def _csv_row(line: int, names: list[str], cells: list[str]) -> RawRow:
    if len(cells) != len(names):
        return RawRow(line, None, f"{counted(len(cells), 'cell')} where the header has {len(names)}")
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return RawRow(line, None, "invalid UTF-8")
    return RawRow(line, dict(zip(names, cells, strict=True)))


def parquet_rows(path: Path) -> Iterator[RawRow]:
    """Yield the rows of a Parquet file."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UserError(f"dataset_file: reading {path} needs pyarrow: pip install 'trajectile[parquet]'") from None
    try:
        yield from _numbered(parquet.ParquetFile(path))
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise UserError(f"dataset_file: {path} cannot be read as Parquet: {error}") from None


def _numbered(file: Any) -> Iterator[RawRow]:
    number = 0
    for batch in file.iter_batches(ROWS_AT_ONCE):
        for row in batch.to_pylist():
            number += 1
            yield RawRow(number, row)
