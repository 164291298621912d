"""Every kind of dataset file, and every way in which a file or a row of it can be wrong."""

import gzip
import json
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet
from trajectile.dataset.files import read_raw, unit_of
from trajectile.dataset.prompts import read_prompts
from trajectile.errors import UserError

BOM = b"\xef\xbb\xbf"


def rows(path: Path, data: bytes) -> list[tuple[int, object]]:
    """Return the rows of a file with this content: number and content, or the reason why there is none."""
    path.write_bytes(data)
    return [(row.line, row.reason if row.content is None else row.content) for row in read_raw(path)]


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    return tmp_path / "p.jsonl"


BAD_LINES = [
    (b"17", "a JSON number where an object with a prompt was expected"),
    (b'"text"', "a JSON string where an object with a prompt was expected"),
    (b"null", "a JSON null where an object with a prompt was expected"),
    (b"true", "a JSON boolean where an object with a prompt was expected"),
    (b"[1, 2]", "a JSON array where an object with a prompt was expected"),
    (b'{"prompt": "a",}', "not JSON: Expecting property name enclosed in double quotes at column 16"),
    (b'{"prompt": "cut', "not JSON: Unterminated string starting at column 12"),
    (b'{"prompt": "a"} {"prompt": "b"}', "not JSON: Extra data at column 17"),
    (b'{"prompt": "\xff"}', "invalid UTF-8 at byte 13"),
    (b'{"prompt": "\xed\xa0\x80"}', "invalid UTF-8 at byte 13"),
    (b'{"prompt": "a", "prompt": "b"}', "'prompt' is there twice"),
    (b'{"messages": [], "x": 1, "messages": []}', "'messages' is there twice"),
    (b'{"x": ' + b"[" * 300 + b"]" * 300 + b"}", "not JSON that can be read: nested more than 200 deep"),
    (b'{"x": NaN, "y": ' + b"[" * 300 + b"]" * 300 + b"}", "not JSON that can be read: nested more than 200 deep"),
    (b'{"x": ' + b"[" * 99999 + b"]" * 99999 + b"}", "not JSON that can be read: nested more than 200 deep"),
    (b'{"x": ' + b"1" * 5000 + b"}", "not JSON that can be read: a number has thousands of digits"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_LINES, ids=lambda value: str(value)[:30])
def test_a_bad_line_is_named_and_its_neighbours_are_read(lines: Path, line: bytes, reason: str) -> None:
    found = rows(lines, b'{"n": 1}\n' + line + b'\n{"n": 3}\n')
    assert found == [(1, {"n": 1}), (2, reason), (3, {"n": 3})]


def test_byte_order_marks_carriage_returns_and_blank_lines_are_passed_over(lines: Path) -> None:
    data = BOM + b'{"n": 1}\r\n\r\n  \t\n' + BOM + b'{"n": 4}\r\n\n{"n": 6}'
    assert rows(lines, data) == [(1, {"n": 1}), (4, {"n": 4}), (6, {"n": 6})]


def test_only_newline_ends_a_line(lines: Path) -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg"
    data = json.dumps({"prompt": text}, ensure_ascii=False).encode() + b'\n{"n": 2}\n'
    assert rows(lines, data) == [(1, {"prompt": text}), (2, {"n": 2})]


def test_lone_surrogates_are_replaced_and_counted(lines: Path) -> None:
    lines.write_bytes(rb'{"a": "\ud800x\udfff", "\udc00": ["\ud83d\ude00"]}')
    (row,) = read_raw(lines)
    assert row.content == {"a": "\ufffdx\ufffd", "\ufffd": ["\U0001f600"]} and row.repaired == 3


def test_numbers_keep_their_digits_and_what_is_no_number_is_null(lines: Path) -> None:
    big = 123456789012345678901234567890
    data = b'{"a": %d, "b": [%d], "c": 1.5, "d": 1e300}\n{"a": NaN, "b": [-Infinity, 1e999]}\n' % (big, -big)
    assert rows(lines, data) == [
        (1, {"a": big, "b": [-big], "c": 1.5, "d": 1e300}),
        (2, {"a": None, "b": [None, None]}),
    ]


def test_the_word_prompt_may_come_up_again_inside_a_row(lines: Path) -> None:
    row = {"prompt": 'say "prompt"', "meta": {"prompt": "x"}, "tags": ["prompt"]}
    assert rows(lines, json.dumps(row).encode()) == [(1, row)]


def test_gzipped_lines(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl.gz"
    assert rows(path, gzip.compress(BOM + b'{"n": 1}\n7\n')) == [
        (1, {"n": 1}),
        (2, "a JSON number where an object with a prompt was expected"),
    ]


DAMAGED = [
    ("p.jsonl.gz", gzip.compress(mtime=0, data=b'{"n": 1}\n' * 999)[:-20], "is damaged: Compressed file ended"),
    ("p.jsonl.gz", b'{"n": 1}\n', "cannot be read: Not a gzipped file"),
    ("p.json", b'[{"n": 1},\n {"n": }]', "not JSON: Expecting value at line 2, column 8"),
    ("p.json", b'[{"n": 1},\n {"n": "\xff"}]', "invalid UTF-8 at byte 9 of line 2"),
    ("p.csv", b"prompt,prompt\na,b\n", "the column 'prompt' is there twice"),
    ("p.csv", b'prompt,n\na,1\n"b,2\nc,3\n', "line 4: not CSV: unexpected end of data"),
    ("p.parquet", b"PAR1 not really", "cannot be read as Parquet"),
    ("p.txt", b"a\n", "ends in none of .jsonl, .jsonl.gz, .json, .csv, .parquet"),
    ("p.csv.gz", b"", "ends in none of"),
]


@pytest.mark.parametrize(("name", "data", "message"), DAMAGED)
def test_a_file_that_cannot_be_read_says_so(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    with pytest.raises(UserError) as error:
        rows(tmp_path / name, data)
    assert str(error.value).startswith(f"dataset_file: {tmp_path / name}") and message in str(error.value)


def test_a_folder_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is a folder. Set dataset_file to a file of prompts"):
        list(read_raw(tmp_path))
    with pytest.raises(UserError, match=r"there is no file .*none.jsonl. Set dataset_file"):
        list(read_raw(tmp_path / "none.jsonl"))


def test_json_arrays_and_json_lines_under_that_name(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    assert rows(path, BOM + b'\n[{"n": 1}, 5,\n {"n": "\\ud800"}]\n') == [
        (1, {"n": 1}),
        (2, "a JSON number where an object with a prompt was expected"),
        (3, {"n": "\ufffd"}),
    ]
    assert sum(row.repaired for row in read_raw(path)) == 1
    assert rows(path, b'{"n": 1}\n{"n": 2}\n') == [(1, {"n": 1}), (2, {"n": 2})]
    assert rows(path, b"[]") == []


def test_csv_rows_have_the_line_they_begin_on(tmp_path: Path) -> None:
    data = BOM + b'prompt,n\r\n"two\r\nlines, ""quoted""",1\r\n\r\n' + "a\u2028b,2\r\n".encode()
    data += b"short\r\none,two,three\r\n\xff,3\r\nlast,4"
    assert rows(tmp_path / "p.csv", data) == [
        (2, {"prompt": 'two\r\nlines, "quoted"', "n": "1"}),
        (5, {"prompt": "a\u2028b", "n": "2"}),
        (6, "1 cell where the header has 2"),
        (7, "3 cells where the header has 2"),
        (8, "invalid UTF-8"),
        (9, {"prompt": "last", "n": "4"}),
    ]


def test_an_empty_cell_is_no_prompt_where_another_column_has_one(tmp_path: Path) -> None:
    turns = '"[{""role"": ""user"", ""content"": ""hi""}]"'
    path = tmp_path / "p.csv"
    path.write_text(f"prompt,messages,n\n,{turns},1\nb,,2\n")
    first, second = read_prompts(path)
    assert (first.turns[0].value, second.turns[0].value) == ("hi", "b")
    assert json.loads(first.source) == {"prompt": "", "n": "1"}


def test_parquet_rows(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "hi"}]
    content = [{"prompt": None, "messages": turns, "n": 1}, {"prompt": "b", "messages": None, "n": None}] * 300
    parquet.write_table(pyarrow.Table.from_pylist(content), tmp_path / "p.parquet")
    found = list(read_raw(tmp_path / "p.parquet"))
    assert [row.content for row in found] == content
    assert [row.line for row in found] == list(range(1, 601))


def test_what_rows_are_counted_in() -> None:
    names = ("p.jsonl", "p.jsonl.gz", "p.csv", "p.json", "p.parquet")
    assert [unit_of(Path(name)) for name in names] == ["line", "line", "line", "row", "row"]
