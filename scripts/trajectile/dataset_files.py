"""Reads the rows of a dataset file as dictionaries, by extension, telling what is wrong with each bad one."""

import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from trajectile.errors import UserError

REPLACEMENT = "\ufffd"
BOM = b"\xef\xbb\xbf"


class RawRow(NamedTuple):
    """A row of a dataset file: its line (or row) number from 1, its content, or else the reason why it has none.

    `repaired` counts lone surrogates that were replaced by U+FFFD.
    """

    line: int
    content: dict[str, Any] | None
    reason: str = ""
    repaired: int = 0


def read_raw(path: Path) -> Iterator[RawRow]:
    """Yield the rows of a .jsonl, .jsonl.gz, .json, .csv or .parquet file."""
    if not path.is_file():
        raise UserError(f"dataset_file: there is no file {path}. Set dataset_file to a JSONL file of prompts.")
    name = path.name.lower()
    if name.endswith((".jsonl.gz", ".jsonl", ".ndjson")):
        with gzip.open(path) if name.endswith(".gz") else path.open("rb") as file:
            yield from _json_lines(file)  # type: ignore[arg-type]
        return
    readers = {".json": _json_array, ".csv": _csv, ".parquet": _parquet}
    if path.suffix.lower() not in readers:
        raise UserError(f"dataset_file: {path.name} is none of .jsonl, .jsonl.gz, .json, .csv, .parquet")
    yield from readers[path.suffix.lower()](path)


def _json_lines(file: BinaryIO) -> Iterator[RawRow]:
    for number, line in enumerate(file, 1):
        if number == 1:
            line = line.removeprefix(BOM)
        if line := line.strip(b" \t\r\n"):
            yield _parse(number, line)


def _parse(number: int, line: bytes) -> RawRow:
    try:
        return _as_row(number, orjson.loads(line), 0)
    except orjson.JSONDecodeError:
        pass
    try:
        value, repaired = _mend(json.loads(line.decode()))
    except UnicodeDecodeError as error:
        return RawRow(number, None, f"invalid UTF-8 at byte {error.start + 1} of the line")
    except (ValueError, RecursionError) as error:
        return RawRow(number, None, f"not JSON: {error}")
    return _as_row(number, value, repaired)


def _as_row(number: int, value: Any, repaired: int) -> RawRow:
    if isinstance(value, dict):
        return RawRow(number, value, "", repaired)
    return RawRow(number, None, f"a JSON {_kind(value)} where an object with a prompt was expected")


def _kind(value: Any) -> str:
    kinds = {
        str: "string",
        bool: "boolean",
        int: "number",
        float: "number",
        list: "array",
        type(None): "null",
    }
    return kinds[type(value)]


def _mend(value: Any) -> tuple[Any, int]:
    """Replace lone surrogates, which no UTF-8 file can hold, and count them."""
    if isinstance(value, str):
        mended = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return mended, sum(0xD800 <= ord(c) <= 0xDFFF for c in value)
    if isinstance(value, list):
        pairs = [_mend(item) for item in value]
        return [item for item, _ in pairs], sum(count for _, count in pairs)
    if isinstance(value, dict):
        items = [(_mend(key), _mend(item)) for key, item in value.items()]
        return {key: item for (key, _), (item, _) in items}, sum(a + b for (_, a), (_, b) in items)
    return value, 0


def _json_array(path: Path) -> Iterator[RawRow]:
    parsed = _parse(1, b'{"rows":' + path.read_bytes().removeprefix(BOM) + b"}")
    if parsed.content is None:
        raise UserError(f"dataset_file: {path.name}: {parsed.reason}")
    rows = parsed.content["rows"]
    if not isinstance(rows, list):
        raise UserError(f"dataset_file: {path.name} holds a JSON {type(rows).__name__}, an array of rows was expected")
    for number, value in enumerate(rows, 1):
        yield _as_row(number, value, 0)


def _csv(path: Path) -> Iterator[RawRow]:
    try:
        text = path.read_bytes().removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        raise UserError(f"dataset_file: {path.name} has invalid UTF-8 at byte {error.start + 1}") from None
    csv.field_size_limit(1 << 30)
    reader = csv.DictReader(io.StringIO(text, newline=""))
    for row in reader:
        yield RawRow(reader.line_num, {key: value for key, value in row.items() if key is not None})


def _parquet(path: Path) -> Iterator[RawRow]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise UserError(f"dataset_file: reading {path.name} needs pyarrow: pip install pyarrow") from None
    number = 0
    for batch in parquet.ParquetFile(path).iter_batches(1024):
        for row in batch.to_pylist():
            number += 1
            yield RawRow(number, {key: value for key, value in row.items() if value is not None})
