"""Toolset distributions: the file, the draw, and what is missing."""

from pathlib import Path

import pytest
from trajectile.errors import UserError
from trajectile.tools.distributions import KNOWN_TOOLSETS, Distribution, choose, draw, load, offered

FILE = Path(__file__).parents[1] / "config" / "distributions.yaml"
AVAILABLE = {"terminal", "file"}
LACKS = {name: "no key" for name in KNOWN_TOOLSETS if name not in AVAILABLE}
DRAWS = 10_000


def test_file_holds_all_distributions() -> None:
    names = "default image_gen research science development safe balanced minimal terminal_only terminal_web creative"
    names += " reasoning browser_use browser_only browser_tasks terminal_tasks mixed_tasks"
    loaded = load(FILE)
    assert list(loaded) == names.split()
    assert loaded["science"].chances == {
        "web": 94,
        "browser": 50,
        "vision": 65,
        "image_gen": 15,
        "terminal": 94,
        "file": 94,
    }
    assert all(distribution.purpose for distribution in loaded.values())


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a:\n  for: x\n  webb: 5\n", 3, "unknown toolset 'webb'"),
        ("a:\n  web: 101\n", 2, "number from 0 to 100, not '101'"),
        ("a:\n  web: 5\nb:\n  file: -1\n", 4, "not '-1'"),
        ("a:\n  web: yes\n", 2, "not 'yes'"),
        ("a:\n  web: .nan\n", 2, "not '.nan'"),
        ("a:\n  web: '5'\n", 2, "not '5'"),
        ("a:\n  web: 5\na:\n  web: 6\n", 3, "'a' is there twice"),
        ("a:\n  web: 5\n  web: 6\n", 3, "'web' is there twice"),
        ("a:\n  web: 0\n", 2, "no toolset has a chance above 0"),
        ("a: 5\n", 1, "must be a mapping"),
        ("a:\n  'mcp:': 5\n", 2, "unknown toolset 'mcp:'"),
        ("", 1, "must be a mapping"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        load(path)
    assert f"line {line}: " in str(caught.value)
    assert message in str(caught.value)


def test_unreadable_files_are_user_errors(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    with pytest.raises(UserError):
        load(path)
    path.write_text("a: [")
    with pytest.raises(UserError, match="line 1"):
        load(path)


def test_users_can_add_their_own(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("mine:\n  terminal: 12.5\n  mcp:github: 100\n")
    assert load(path)["mine"].chances == {"terminal": 12.5, "mcp:github": 100}


def test_unknown_name_lists_the_accepted() -> None:
    with pytest.raises(UserError, match="accepted are: balanced, browser_only"):
        choose(load(FILE), "sience")


def test_draws_are_the_same_on_every_machine() -> None:
    balanced = load(FILE)["balanced"]
    assert [draw(balanced, 7, "abc", ordinal) for ordinal in range(3)] == [
        ["web", "browser", "vision", "image_gen", "terminal", "file"],
        ["web", "image_gen"],
        ["browser", "vision"],
    ]


def test_seed_key_and_ordinal_each_matter() -> None:
    balanced = load(FILE)["balanced"]
    for arguments in ([(seed, "k", 0) for seed in range(50)], [(1, str(key), 0) for key in range(50)]):
        assert len({tuple(draw(balanced, *each)) for each in arguments}) > 20
    assert len({tuple(draw(balanced, 1, "k", ordinal)) for ordinal in range(50)}) > 20


def test_chances_come_true_and_toolsets_are_independent() -> None:
    """Pearson's statistic over the 16 outcomes of four toolsets; 37.7 is the 0.1 % point at 15 degrees of freedom."""
    distribution = Distribution("d", {"web": 90, "vision": 35, "terminal": 60, "file": 99})
    outcomes = [tuple(draw(distribution, 3, str(row), 0)) for row in range(DRAWS)]
    statistic = 0.0
    for bits in range(16):
        chosen = tuple(name for place, name in enumerate(distribution.chances) if bits >> place & 1)
        expected = float(DRAWS)
        for name, chance in distribution.chances.items():
            expected *= chance / 100 if name in chosen else 1 - chance / 100
        if chosen:
            statistic += (outcomes.count(chosen) - expected) ** 2 / expected
    assert statistic < 37.7


def test_certain_and_impossible_are_just_that() -> None:
    distribution = Distribution("d", {"web": 100, "file": 0, "terminal": 50})
    drawn = [draw(distribution, 1, str(row), 0) for row in range(1000)]
    assert all("web" in each and "file" not in each for each in drawn)


def test_at_least_the_likeliest_and_among_equals_a_draw() -> None:
    rare = Distribution("d", {"web": 0.1, "file": 0.01})
    assert sum(draw(rare, 1, str(row), 0) == ["web"] for row in range(1000)) > 990
    equal = Distribution("d", {"web": 0.01, "file": 0.01})
    webs = sum(draw(equal, 1, str(row), 0) == ["web"] for row in range(DRAWS))
    assert abs(webs - DRAWS / 2) < 200


def test_missing_toolsets_are_refused_with_what_works() -> None:
    loaded = load(FILE)
    with pytest.raises(UserError) as caught:
        offered(loaded, "science", LACKS, drop=False)
    assert "cannot work here:\n  web: no key\n  browser: no key\n" in str(caught.value)
    assert "work now: terminal_only." in str(caught.value)
    assert "missing_toolsets: drop" in str(caught.value)
    assert offered(loaded, "terminal_only", LACKS, drop=False).chances == {"terminal": 100, "file": 100}


def test_missing_toolsets_are_dropped_without_changing_the_other_draws() -> None:
    loaded = load(FILE)
    reduced = offered(loaded, "science", LACKS, drop=True)
    assert reduced.chances == {"terminal": 94, "file": 94}
    for row in range(200):
        full = [name for name in draw(loaded["science"], 1, str(row), 0) if name in AVAILABLE]
        assert draw(reduced, 1, str(row), 0) == full or not full


def test_nothing_left_is_refused_even_when_dropping() -> None:
    with pytest.raises(UserError) as caught:
        offered(load(FILE), "minimal", LACKS, drop=True)
    assert "cannot work here:\n  web: no key" in str(caught.value)
    assert "drop" not in str(caught.value)
