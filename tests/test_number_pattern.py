import random
import re

import pytest
from trajectile.planning.number_pattern import number_pattern

SOME = random.Random(1).sample(range(3000), 700)


@pytest.mark.parametrize("numbers", [[], [0], [7, 70, 700], range(12), range(95, 1200), SOME])
def test_matches_the_numbers_and_nothing_else(numbers: list[int]) -> None:
    pattern = re.compile(number_pattern(numbers))
    assert {n for n in range(5000) if pattern.fullmatch(str(n))} == set(numbers)
    assert not any(pattern.fullmatch(text) for text in ("", "00", "07", "1x", " 1"))


def test_ten_thousand_numbers_in_a_row_need_few_characters() -> None:
    assert len(number_pattern(range(10_000))) < 100
    assert len(number_pattern(range(2345, 10_000))) < 300
