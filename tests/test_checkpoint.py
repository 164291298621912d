import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trajectile.run_folder.checkpoint import merge_ranges, read_checkpoint, rebuild_checkpoint, update_checkpoint
from trajectile.run_folder.paths import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    (tmp_path / "journal").mkdir()
    return RunFolder(tmp_path)


def test_batches_add_up_to_few_ranges(folder: RunFolder) -> None:
    update_checkpoint(folder, 1, [5, 3, 4])
    update_checkpoint(folder, 0, [0, 1])
    assert read_checkpoint(folder).finished == [(0, 1), (3, 5)]
    update_checkpoint(folder, 2, [2])
    known = read_checkpoint(folder)
    assert (known.finished, known.batches) == ([(0, 5)], [0, 1, 2]) and known.updated


def test_shards_that_end_at_the_same_time_lose_nothing(folder: RunFolder) -> None:
    with ThreadPoolExecutor(8) as threads:
        for shard in threads.map(lambda n: update_checkpoint(folder, n, [10 * n]), range(24)):
            assert shard is None
    assert read_checkpoint(folder).batches == list(range(24))
    assert read_checkpoint(folder).finished == [(10 * n, 10 * n) for n in range(24)]


def test_a_batch_that_is_gone_is_forgotten_and_the_others_are_not(folder: RunFolder) -> None:
    for number, indices in enumerate(([0, 1], [5, 6], [3])):
        folder.batch(number).write_text("".join(f'{{"prompt_index": {index}, "x": 0}}\n' for index in indices) + '{"p')
        update_checkpoint(folder, number, indices)
    known = read_checkpoint(folder)
    rebuild_checkpoint(folder)
    assert read_checkpoint(folder) == known
    folder.batch(1).unlink()
    rebuild_checkpoint(folder)
    assert (read_checkpoint(folder).finished, read_checkpoint(folder).batches) == ([(0, 1), (3, 3)], [0, 2])
    for number in (0, 2):
        folder.batch(number).unlink()
    rebuild_checkpoint(folder)
    assert (read_checkpoint(folder).finished, read_checkpoint(folder).batches) == ([], [])


@pytest.mark.parametrize("damage", [b"", b"{", b'{"finished": "all"}'])
def test_it_is_never_trusted(folder: RunFolder, damage: bytes) -> None:
    folder.checkpoint.write_bytes(damage)
    assert read_checkpoint(folder).finished == []
    update_checkpoint(folder, 0, [7])
    assert read_checkpoint(folder).finished == [(7, 7)]


@given(st.lists(st.integers(0, 60)))
def test_ranges_hold_exactly_the_numbers_and_never_touch(numbers: list[int]) -> None:
    ranges = merge_ranges((number, number) for number in numbers)
    assert sorted(set(numbers)) == [number for first, last in ranges for number in range(first, last + 1)]
    assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(ranges))
