"""Reads the rows of a dataset file as dictionaries, by extension, telling what is wrong with each bad one."""

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from trajectile.dataset.raw_rows import NotJson, RawRow, as_row, loads, row_of
from trajectile.dataset.tables import csv_rows, parquet_rows
from trajectile.errors import UserError

BOM = b"\xef\xbb\xbf"
ENDINGS = (".jsonl", ".jsonl.gz", ".json", ".csv", ".parquet")


def read_raw(path: Path) -> Iterator[RawRow]:
    """Yield the rows of a .jsonl, .jsonl.gz, .json, .csv or .parquet file."""
    if not path.is_file():
        what = f"{path} is a folder" if path.is_dir() else f"there is no file {path}"
        raise UserError(f"dataset_file: {what}. Set dataset_file to a file of prompts ({', '.join(ENDINGS)}).")
    readers = {".gz": _gzipped_lines, ".jsonl": _plain_lines, ".ndjson": _plain_lines}
    readers |= {".json": _json, ".csv": csv_rows, ".parquet": parquet_rows}
    ending = path.suffix.lower()
    if ending not in readers or (ending == ".gz" and not path.name.lower().endswith(".jsonl.gz")):
        raise UserError(f"dataset_file: {path} ends in none of {', '.join(ENDINGS)}")
    try:
        yield from readers[ending](path)
    except OSError as error:
        raise UserError(f"dataset_file: {path} cannot be read: {error.strerror or error}") from None


def unit_of(path: Path) -> str:
    """Name what the rows of a file are counted in."""
    return "row" if path.suffix.lower() in (".json", ".parquet") else "line"


def _plain_lines(path: Path) -> Iterator[RawRow]:
    with path.open("rb") as file:
        yield from _json_lines(file)


def _gzipped_lines(path: Path) -> Iterator[RawRow]:
    try:
        with gzip.open(path) as file:
            yield from _json_lines(file)
    except (EOFError, zlib.error) as error:
        raise UserError(f"dataset_file: {path} is damaged: {error}") from None


def _json_lines(file: Iterable[bytes]) -> Iterator[RawRow]:
    """Lines end at \\n alone. A byte order mark may begin any of them: files with one are joined by `cat`."""
    for number, line in enumerate(file, 1):
        if line := line.removeprefix(BOM).strip(b" \t\r\n"):
            yield row_of(number, line)


def _json(path: Path) -> Iterator[RawRow]:
    """Yield the rows of a JSON array, or of JSON lines under this name."""
    data = path.read_bytes().removeprefix(BOM)
    if not data.lstrip().startswith(b"["):
        yield from _json_lines(io.BytesIO(data))
        return
    try:
        rows, repaired = loads(data)
    except NotJson as error:
        raise UserError(f"dataset_file: {path}: {error}") from None
    for number, value in enumerate(rows, 1):
        yield as_row(number, value, repaired if number == 1 else 0)
