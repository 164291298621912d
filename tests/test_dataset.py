"""Dataset rows as prompts: keys, multiplicity, other columns, and the report on bad rows."""

import json
from pathlib import Path
from typing import Any

import pytest
from trajectile.dataset.prompts import read_ids, read_prompts
from trajectile.errors import UserError
from trajectile.notes import SHOWN, Notes, remarks
from trajectile.rows import PromptRow
from trajectile.run_folder.ids import make_id

TURNS = [{"from": "human", "value": "hi"}]


def write(folder: Path, *content: Any, name: str = "p.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in content))
    return path


def read(folder: Path, *content: Any, **options: Any) -> list[PromptRow]:
    return list(read_prompts(write(folder, *content), **options))


def key(folder: Path, **row: Any) -> str:
    return read(folder, row)[0].prompt_key


def test_the_key_is_the_content_that_defines_the_work(tmp_path: Path) -> None:
    base = key(tmp_path, prompt="hi")
    assert key(tmp_path, prompt="hi", other=5) == base
    assert len({base, *(key(tmp_path, prompt="hi", **{name: "x"}) for name in ("image", "cwd"))}) == 3
    assert key(tmp_path, prompt="hi", image="x") == key(tmp_path, prompt="hi", docker_image="x")
    assert key(tmp_path, prompt="hi ") != base
    chat = [{"role": "user", "content": "hi"}]
    turns = {key(tmp_path, conversations=TURNS), key(tmp_path, messages=chat), key(tmp_path, prompt=chat)}
    assert len(turns) == 1 and turns != {base}


def test_equal_rows_are_told_apart_by_their_ordinal(tmp_path: Path) -> None:
    rows = read(tmp_path, {"prompt": "a"}, {"prompt": "b"}, {"prompt": "a", "n": 1}, {"prompt": "a"})
    assert [row.ordinal for row in rows] == [0, 0, 1, 2] and [row.prompt_index for row in rows] == [0, 1, 2, 3]
    assert [row.ordinal for row in read_prompts(tmp_path / "p.jsonl", ordinals=False)] == [0, 0, 0, 0]
    ids = read_ids(tmp_path / "p.jsonl", on_bad_row="error", max_samples=3).ids
    assert ids == [make_id(row.prompt_key, row.ordinal) for row in rows[:3]]


def test_other_columns_are_kept_in_source(tmp_path: Path) -> None:
    row = {"id": 10**30, "t": "\u2028é", "none": None, "deep": {"a": [1.5]}}
    place = {"image": "x", "cwd": "sub/folder"}
    (found,) = read(tmp_path, {"prompt": "a", **place, **row})
    assert json.loads(found.source) == row and (found.image, found.cwd) == ("x", "sub/folder")


def test_the_first_prompt_column_that_is_not_null_counts_and_the_others_stay(tmp_path: Path) -> None:
    (first,) = read(tmp_path, {"prompt": "a", "messages": TURNS})
    assert first.turns[0].value == "a" and json.loads(first.source) == {"messages": TURNS}
    (second,) = read(tmp_path, {"prompt": None, "conversations": TURNS})
    assert second.turns[0].value == "hi"


def test_turns_in_a_table_are_json_text(tmp_path: Path) -> None:
    cell = json.dumps(TURNS).replace('"', '""')
    path = write(tmp_path, "conversations,n", f'"{cell}",7', "plain text,8", name="p.csv")
    notes = Notes()
    (row,) = read_prompts(path, on_bad_row="skip", notes=notes)
    assert row.turns[0].value == "hi" and json.loads(row.source) == {"n": "7"}
    assert notes.problems == [(3, "conversations is a text, a list of turns was expected")]


BAD = [
    ({"question": "a", "x": 1}, "no prompt: its columns are 'question', 'x'"),
    ({}, "no prompt: its columns are none"),
    ({"prompt": None}, "the prompt is null, a text or a list of turns was expected"),
    ({"prompt": "a", "cwd": "../up"}, "cwd '../up' leads out of the sandbox"),
    ({"prompt": "a", "cwd": "/a/../../up"}, "cwd '/a/../../up' leads out of the sandbox"),
    ({"prompt": "a", "cwd": 5}, "cwd is 5, a text was expected"),
    ({"prompt": "a", "cwd": "a\0b"}, "cwd is 'a\\x00b', a text was expected"),
    ({"prompt": "a", "image": {"bytes": ""}}, "image is {'bytes': ''}, a text was expected"),
    ({"prompt": "a", "docker_image": False}, "docker_image is False, a text was expected"),
]


@pytest.mark.parametrize(("row", "reason"), BAD, ids=lambda value: str(value)[:40])
def test_a_bad_row_is_reported_with_line_and_reason(tmp_path: Path, row: Any, reason: str) -> None:
    with pytest.raises(UserError) as error:
        read(tmp_path, {"prompt": "good"}, "", row)
    assert str(error.value) == (
        f"dataset_file: {tmp_path / 'p.jsonl'}: 1 row cannot be used:\n  line 3: {reason}\n"
        "Mend them, or set on_bad_row to skip to run the others."
    )
    assert [good.turns[0].value for good in read_prompts(tmp_path / "p.jsonl", on_bad_row="skip")] == ["good"]


def test_every_bad_row_is_in_one_report(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        read(tmp_path, *range(50), {"prompt": "a"})
    assert str(error.value).count("a JSON number") == 50 and "line 50:" in str(error.value)
    with pytest.raises(UserError, match=r"… and 5 more"):
        read(tmp_path, *range(SHOWN + 5))


def test_nothing_usable_is_refused_even_with_skip(tmp_path: Path) -> None:
    for on_bad_row in ("skip", "error"):
        with pytest.raises(UserError, match=r"2 rows cannot be used:\n  line 1(.*\n)*Mend them: there are no others.$"):
            read(tmp_path, 1, 2, on_bad_row=on_bad_row)
    with pytest.raises(UserError, match=r"p.jsonl holds no rows"):
        read_ids(write(tmp_path), on_bad_row="error", max_samples=None)


def test_max_samples_counts_usable_rows_and_looks_no_further(tmp_path: Path) -> None:
    rows = read(tmp_path, {"prompt": "a"}, 7, {"prompt": "b"}, {"prompt": "c"}, on_bad_row="skip", max_samples=2)
    assert [(row.prompt_index, row.turns[0].value) for row in rows] == [(0, "a"), (2, "b")]
    assert len(read(tmp_path, {"prompt": "a"}, 7, max_samples=1)) == 1


def test_a_prompt_of_five_megabytes_is_a_prompt(tmp_path: Path) -> None:
    text = "é" * 2_500_000
    (row,) = read(tmp_path, {"prompt": text})
    assert row.turns[0].value == text


def test_the_user_is_told_of_bad_rows_and_of_replaced_surrogates(tmp_path: Path) -> None:
    path = write(tmp_path, {"prompt": "a\ud800\udc01b\udfff"}, 7, {"prompt": "b", "image": "x"})
    notes = read_ids(path, on_bad_row="skip", max_samples=None).notes
    assert (notes.bad, notes.repaired, notes.images, notes.image_line) == (1, 1, 1, 3)
    assert remarks(notes, "line") == [
        "1 row of the dataset cannot be used and will be left out (on_bad_row: skip):\n"
        "  line 2: a JSON number where an object with a prompt was expected",
        "1 lone surrogate in the dataset replaced by U+FFFD",
    ]
