"""A row of a dataset file before anyone knows what it means, and JSON text read without losing anything."""

import json
import math
from typing import Any, NamedTuple

import orjson

EXACT_FLOAT = 2.0**63  # orjson reads integers beyond 64 bits as floats, which start here
DEEPEST = 200  # lists and objects inside each other; Python's own limit depends on the caller
GUARDED = (b'"prompt"', b'"messages"', b'"conversations"')
PLAIN = frozenset({str, int, bool, type(None)})


class RawRow(NamedTuple):
    """A row of a dataset file: its line (or row) number from 1, its content, or else the reason why it has none.

    `repaired` counts lone surrogates that were replaced by U+FFFD.
    """

    line: int
    content: dict[str, Any] | None
    reason: str = ""
    repaired: int = 0


class NotJson(ValueError):
    """Text that is no JSON; the message says why."""


def row_of(number: int, line: bytes) -> RawRow:
    """Return the row that one line of JSON stands for."""
    try:
        value = orjson.loads(line)
        if type(value) is dict and PLAIN.issuperset(map(type, value.values())) and line.count(GUARDED[0]) < 2:
            return RawRow(number, value)  # most rows: nothing that orjson could have read wrongly
    except orjson.JSONDecodeError:
        pass
    return _careful_row(number, line)


def _careful_row(number: int, line: bytes) -> RawRow:
    try:
        value, repaired = loads(line)
    except NotJson as error:
        return RawRow(number, None, str(error))
    if twice := _given_twice(line):
        return RawRow(number, None, f"{twice!r} is there twice")
    return as_row(number, value, repaired)


def as_row(number: int, value: Any, repaired: int = 0) -> RawRow:
    """Return the row that a decoded value stands for."""
    if isinstance(value, dict):
        return RawRow(number, value, "", repaired)
    return RawRow(number, None, f"a JSON {kind_of(value)} where an object with a prompt was expected")


def kind_of(value: Any) -> str:
    """Name the JSON type of a value."""
    kinds: dict[type, str] = {str: "string", bool: "boolean", int: "number", float: "number", list: "array"}
    return "null" if value is None else kinds.get(type(value), "object")


def loads(data: bytes) -> tuple[Any, int]:
    """Decode JSON; return it with the number of lone surrogates that were replaced. NotJson says what is wrong.

    Integers keep all their digits; NaN and Infinity, which Python writes though JSON has no such thing, become null.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _loads_patiently(data)
    return _loads_patiently(data) if _lost_digits(value) else (value, 0)


def _loads_patiently(data: bytes) -> tuple[Any, int]:
    try:
        return _mended(json.loads(data.decode()))
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n")
        column = error.start - before.rfind(b"\n")
        raise NotJson(f"invalid UTF-8 at byte {column}{f' of line {line + 1}' if line else ''}") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise NotJson(f"not JSON: {error.msg.removesuffix(' at')} at {where}") from None
    except RecursionError:
        raise _too_deep() from None
    except NotJson:
        raise
    except ValueError:  # Python's limit on digits
        raise NotJson("not JSON that can be read: a number has thousands of digits") from None


def _too_deep() -> NotJson:
    return NotJson(f"not JSON that can be read: nested more than {DEEPEST} deep")


def _lost_digits(value: Any, depth: int = 0) -> bool:
    """Tell whether an integer may have been rounded to a float."""
    if isinstance(value, float):
        return abs(value) >= EXACT_FLOAT
    if not isinstance(value, dict | list):
        return False
    if depth > DEEPEST:
        raise _too_deep()
    items = value.values() if isinstance(value, dict) else value
    return sum(_lost_digits(item, depth + 1) for item in items if not isinstance(item, str)) > 0


def _given_twice(line: bytes) -> str:
    """Return the column of the prompt that an object gives twice, "" where it gives none twice."""
    if all(line.count(name) < 2 for name in GUARDED):
        return ""
    top: list[tuple[str, Any]] = json.loads(line, object_pairs_hook=list)
    names = [name for name, _ in top] if isinstance(top, list) and line.startswith(b"{") else []
    return next((name for name in names if names.count(name) > 1 and f'"{name}"'.encode() in GUARDED), "")


def _mended(value: Any, depth: int = 0) -> tuple[Any, int]:
    """Replace what no UTF-8 file or JSON text can hold: lone surrogates, which are counted, and NaN."""
    if isinstance(value, str):
        lone = sum(0xD800 <= ord(character) <= 0xDFFF for character in value)
        return (value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if lone else value), lone
    if depth > DEEPEST:
        raise _too_deep()
    if isinstance(value, list):
        pairs = [_mended(item, depth + 1) for item in value]
        return [item for item, _ in pairs], sum(count for _, count in pairs)
    if isinstance(value, dict):
        items = [(_mended(key), _mended(item, depth + 1)) for key, item in value.items()]
        return {key: item for (key, _), (item, _) in items}, sum(a + b for (_, a), (_, b) in items)
    return (None if isinstance(value, float) and not math.isfinite(value) else value), 0
