import asyncio
from pathlib import Path

import pytest
from helpers import largest_file
from trajectile.run_folder.journal import FAILURE, Appender, Failure, decode, encode, records, row_lines

LINE_BREAKS = "\u2028 \u2029 \u0085 \x0b \x0c \r\n \r"


def failure(message: str, attempt: int = 1) -> Failure:
    return Failure(0, "a" * 64, 0, 0, attempt, "timeout", message, "2026-11-29T16:00:00+00:00")


def append(path: Path, *messages: str) -> None:
    async def run() -> None:
        appender = Appender(path)
        for message in messages:
            await appender.append(encode(failure(message)))
        appender.close()

    asyncio.run(run())


def messages(path: Path) -> list[str]:
    return [record.message for record in records(path, FAILURE)]


def test_an_absent_file_has_no_records(tmp_path: Path) -> None:
    assert list(row_lines(tmp_path / "none")) == [] and messages(tmp_path / "none") == []


def test_what_is_appended_is_read_again_over_several_lives(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "journal.jsonl"
    append(path, "one", "two")
    append(path, "three")
    assert messages(path) == ["one", "two", "three"]


def test_one_record_is_one_line_whatever_breaks_lines_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    append(path, LINE_BREAKS, "after")
    assert path.read_bytes().count(b"\n") == 2
    assert messages(path) == [LINE_BREAKS, "after"]
    [(_, first), (offset, second)] = row_lines(path)
    assert path.read_bytes()[offset:] == second + b"\n" and offset == len(first) + 1


def test_a_file_that_is_taken_away_while_rows_are_appended_is_put_back(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    async def run() -> None:
        appender = Appender(path)
        for message in ("one", "two"):
            await appender.append(encode(failure(message)))
            path.unlink()
        await appender.append(encode(failure("three")))
        path.rename(tmp_path / "elsewhere")
        appender.close()

    asyncio.run(run())
    assert messages(path) == ["one", "two", "three"]


def test_nothing_is_appended_beside_a_file_that_took_its_place(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    appender = Appender(path)
    appender.write(encode(failure("one")))
    path.rename(tmp_path / "elsewhere")
    path.write_bytes(encode(failure("of another")))
    for step in (lambda: appender.write(encode(failure("two"))), appender.close):
        with pytest.raises(OSError, match=r"journal\.jsonl was replaced by another file"):
            step()
    assert messages(path) == ["of another"] and messages(tmp_path / "elsewhere") == ["one", "two"]


@pytest.mark.parametrize("cut", [1, 20, 150])
def test_a_torn_last_line_costs_only_itself_and_the_next_one_starts_anew(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "journal.jsonl"
    append(path, "kept", "torn")
    path.write_bytes(path.read_bytes()[:-cut])
    append(path, "next")
    assert messages(path) == (["kept", "torn", "next"] if cut == 1 else ["kept", "next"])
    assert path.read_bytes().endswith(encode(failure("next")))


@pytest.mark.parametrize("damage", [b"\x00" * 40, b"\xff\xfe", b"[1]", b"{}", b'{"prompt_index": 1', b""])
def test_damaged_lines_are_passed_over(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    append(path, "one", "two")
    first, second, _ = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([first, damage, second, b""]))
    assert messages(path) == ["one", "two"]
    assert decode(damage, FAILURE) is None


def test_a_line_that_does_not_fit_on_the_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    async def run() -> None:
        appender = Appender(path)
        await appender.append(encode(failure("first")))
        with largest_file(path.stat().st_size + 100), pytest.raises(OSError):
            await appender.append(encode(failure("too long" * 100)))
        await appender.append(encode(failure("later")))
        appender.close()

    asyncio.run(run())
    assert path.read_bytes() == encode(failure("first")) + encode(failure("later"))


def test_lines_of_many_tasks_at_once_are_all_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    wanted = {f"{task} {number} " + "x" * 5000 for task in range(20) for number in range(5)}

    async def work(appender: Appender, mine: list[str]) -> None:
        for message in mine:
            await appender.append(encode(failure(message)))
            assert encode(failure(message)) in path.read_bytes()

    async def run() -> None:
        appender = Appender(path)
        groups = [[m for m in wanted if m.startswith(f"{task} ")] for task in range(20)]
        await asyncio.gather(*(work(appender, group) for group in groups))
        appender.close()

    asyncio.run(run())
    assert sorted(messages(path)) == sorted(wanted)
