"""Matching is checked against a plain reading of its rule, row by row."""

import random
from collections import Counter, defaultdict
from hashlib import sha256

import pytest
from trajectile.results.matching import Matcher


def key(name: object) -> str:
    return sha256(str(name).encode()).hexdigest()


def match(prompts: list[str], rows: list[tuple[str, int]]) -> tuple[list[int], list[int]]:
    matcher = Matcher(map(key, prompts))
    for name, ordinal in rows:
        matcher.add(key(name), ordinal)
    row_of_prompt, superseded = matcher.match()
    return row_of_prompt.tolist(), superseded.tolist()


def plainly(prompts: list[str], rows: list[tuple[str, int]]) -> list[int]:
    """The rule in Python: exact matches first, then rows of the same key in reading order."""
    seen: Counter[str] = Counter()
    slots = {}
    for index, name in enumerate(prompts):
        slots[name, seen[name]] = index
        seen[name] += 1
    result = [-1] * len(prompts)
    spare = defaultdict(list)
    for number, row in enumerate(rows):
        slot = slots.get(row)
        if slot is not None and result[slot] < 0:
            result[slot] = number
        else:
            spare[row[0]].append(number)
    for index, name in enumerate(prompts):
        if result[index] < 0 and spare[name]:
            result[index] = spare[name].pop(0)
    return result


def test_each_prompt_gets_the_row_of_its_key_and_ordinal() -> None:
    assert match(["a", "b", "a"], [("a", 1), ("b", 0), ("a", 0)]) == ([2, 1, 0], [])


def test_a_row_with_another_ordinal_serves_an_equal_prompt() -> None:
    assert match(["a", "a", "b"], [("a", 5), ("a", 1)]) == ([0, 1, -1], [])


def test_of_equal_rows_the_first_is_taken_and_the_others_are_superseded() -> None:
    assert match(["a"], [("a", 0), ("a", 0), ("a", 0)]) == ([0], [1, 2])


def test_rows_whose_prompt_is_gone_are_superseded() -> None:
    assert match(["a"], [("gone", 0), ("a", 0)]) == ([1], [0])


@pytest.mark.parametrize(
    ("prompts", "rows", "expected"),
    [([], [], ([], [])), (["a"], [], ([-1], [])), ([], [("a", 0)], ([], [0]))],
)
def test_empty_sides(prompts: list[str], rows: list[tuple[str, int]], expected: object) -> None:
    assert match(prompts, rows) == expected


def test_superseded_rows_come_in_an_order_that_reading_order_does_not_change() -> None:
    rows = [("a", 0), ("b", 1), ("b", 0), ("c", 0), ("a", 3)]
    orders = [random.Random(seed).sample(rows, len(rows)) for seed in range(5)]
    left = [[order[number] for number in match(["x"], order)[1]] for order in orders]
    assert all(sorted(names) == sorted(rows) for names in left)
    assert all(names == left[0] for names in left)


@pytest.mark.parametrize("seed", range(30))
def test_random_multisets_agree_with_the_plain_rule(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"p{n}" for n in range(chance.choice([1, 5, 40]))]
    prompts = [chance.choice(names) for _ in range(chance.randrange(80))]
    rows = [(chance.choice([*names, "gone"]), chance.randrange(6)) for _ in range(chance.randrange(80))]
    row_of_prompt, superseded = match(prompts, rows)
    assert row_of_prompt == plainly(prompts, rows)
    used = {number for number in row_of_prompt if number >= 0}
    assert sorted(superseded) == [number for number in range(len(rows)) if number not in used]


def test_a_matcher_forgets_what_it_was_asked_about() -> None:
    matcher = Matcher([key("a"), key("b")])
    matcher.add(key("a"), 0)
    assert matcher.match().row_of_prompt.tolist() == [0, -1]
    for name, ordinal in [("b", 0), ("b", 1), ("gone", 0), ("a", 0)]:
        matcher.add(key(name), ordinal)
    assert matcher.exact().tolist() == [1, -1, -1, 0]
    assert matcher.match().row_of_prompt.tolist() == [-1, -1]


@pytest.mark.parametrize(
    "keys", [("1" * 16 + "a" * 48, "1" * 16 + "b" * 48), ("a" * 16 + "1" * 48, "b" * 16 + "1" * 48)]
)
def test_keys_that_agree_in_one_half_are_different(keys: tuple[str, str]) -> None:
    matcher = Matcher(keys)
    matcher.add(keys[1], 0)
    assert matcher.match().row_of_prompt.tolist() == [-1, 0]
