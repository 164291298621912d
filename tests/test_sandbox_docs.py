"""docs/sandboxes.md claims nothing that no test shows."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "sandboxes.md").read_text()
TABLE = PAGE.split("## What a hostile command reaches")[1].split("\n## ")[0]
LINES = [line.strip("| ").split(" | ") for line in TABLE.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("cells", LINES, ids=lambda cells: cells[0])
def test_each_line_names_a_test_that_there_is(cells: list[str]) -> None:
    assert len(cells) == 8
    file, name = re.fullmatch(r"(?:`(test_\w+\.py)`: )?`(test_\w+)`", cells[-1]).groups()  # type: ignore[union-attr]
    places = [TESTS / file] if file else (TESTS / "sandbox_contract").glob("test_*.py")
    assert any(f"\ndef {name}(" in place.read_text() for place in places), f"there is no {name}"


def test_every_setting_of_sandboxes_is_named() -> None:
    schema = (TESTS.parent / "config" / "config.schema.yaml").read_text()
    for name in re.findall(r"^  (sandbox_\w+|local_isolation|image_pull):", schema, re.M):
        assert f"`{name}" in PAGE, name
