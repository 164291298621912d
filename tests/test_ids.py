import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from results_files import Run
from trajectile.run_folder.ids import ID_BYTES, Ids, digest_of, make_id, remember, remembered, row_ids, unpack

IDS = [make_id("ab" * 32, 0), make_id("ab" * 32, 1), make_id("01" * 32, 70_000)]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = Run(tmp_path, ["a", "same", "same"])
    made.batch(0, *(made.row(n) for n in range(3)))
    return made


@given(st.binary(min_size=32, max_size=32), st.integers(0, 2**32 - 1))
def test_an_id_is_key_and_ordinal(key: bytes, ordinal: int) -> None:
    made = make_id(key.hex(), ordinal)
    assert len(made) == ID_BYTES and made[:32] == key and int.from_bytes(made[32:], "big") == ordinal


def test_packed_ids_come_apart_again() -> None:
    assert list(unpack(b"".join(IDS))) == IDS


def test_equal_rows_of_a_file_have_ids_of_their_own(run: Run) -> None:
    run.batch(0, run.row(2), run.row(1), tail=b"{")
    found = list(row_ids(run.folder.batch(0)))
    assert found == [make_id(run.prompts[n].prompt_key, run.prompts[n].ordinal) for n in (2, 1)]
    assert found[0] != found[1] and found[0][:32] == found[1][:32]


def test_an_unchanged_file_is_known(run: Run) -> None:
    path = run.folder.batch(0)
    assert remembered(run.folder, path) is None
    remember(run.folder, path, Ids(IDS, "digest"), max_samples=None)
    known = remembered(run.folder, path, max_samples=None)
    assert known is not None and (known.ids, known.digest) == (IDS, "digest")


def test_it_is_forgotten_with_another_size_time_or_way_of_reading(run: Run) -> None:
    path = run.folder.batch(0)
    remember(run.folder, path, Ids(IDS, ""), max_samples=3)
    assert remembered(run.folder, path, max_samples=4) is None
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert remembered(run.folder, path, max_samples=3) is None
    remember(run.folder, path, Ids(IDS, ""), max_samples=3)
    assert remembered(run.folder, path, max_samples=3) is not None
    with path.open("ab") as file:
        file.write(b"\n")
    assert remembered(run.folder, path, max_samples=3) is None
    path.unlink()
    assert remembered(run.folder, path, max_samples=3) is None


def test_another_file_of_the_same_name_size_and_time_is_another(run: Run, tmp_path: Path) -> None:
    for folder, text in (("a", "one"), ("b", "two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "p.jsonl").write_text(text)
        os.utime(tmp_path / folder / "p.jsonl", (1e9, 1e9))
    remember(run.folder, tmp_path / "a" / "p.jsonl", Ids(IDS, ""))
    assert remembered(run.folder, tmp_path / "a" / "p.jsonl") is not None
    assert remembered(run.folder, tmp_path / "b" / "p.jsonl") is None


@pytest.mark.parametrize(
    "change", [lambda b: b[:-1], lambda b: b[:-36], lambda b: b"", lambda b: b"{}\n", lambda b: b[:20]]
)
def test_damaged_keys_are_not_believed(run: Run, change: object) -> None:
    path = run.folder.batch(0)
    remember(run.folder, path, Ids(IDS, ""))
    keys = run.folder.keys(path)
    keys.write_bytes(change(keys.read_bytes()))  # type: ignore[operator]
    assert remembered(run.folder, path) is None


def test_a_digest_depends_on_the_content_and_not_on_the_cut() -> None:
    assert digest_of([b"ab", b"c"]) == digest_of([b"abc"]) != digest_of([b"abd"])
