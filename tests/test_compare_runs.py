import math
import re

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from compare_runs import main
from report_files import HOSTILE, finish, identity, make_run
from trajectile.comparison.comparing import Method, compare, read_runs
from trajectile.comparison.intervals import mcnemar, paired_difference, percentiles, wilson
from trajectile.comparison.wording import difference, estimate
from trajectile.errors import UserError
from trajectile.results.sources import FinishedRows
from trajectile.rows import ToolStat

METHOD = Method(0.95, 400, 0)


def rows_of(run):
    return {row.prompt_index: row for row, _, _ in FinishedRows(run.folder)}


def changed(run, number, **changes):
    """Write one row of a run anew."""
    rows = rows_of(run)
    rows[number] = msgspec.structs.replace(rows[number], **changes)
    run.batch(number // 100, *(row for n, row in rows.items() if n // 100 == number // 100))


def compared(a, b, method=METHOD):
    return compare(read_runs(a.folder, b.folder), method)


def lines(comparison):
    return {line.name: line for line in comparison.lines}


def invoke(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.fixture
def a(tmp_path):
    return finish(make_run(tmp_path / "a", 60, seed=1, run_name="first"))


@pytest.fixture
def b(tmp_path):
    return finish(make_run(tmp_path / "b", 50, seed=2, run_name="second"))


def test_wilson_and_newcombe_give_the_published_intervals():
    """Newcombe 1998, Statistics in Medicine 17: 81 of 263 on page 862, the pairs 36, 12, 2, 0 on page 2641."""
    assert wilson(81, 263, 0.95)[1:] == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(0, 20, 0.95)[1:] == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert paired_difference(36, 2, 12, 0, 0.95) == pytest.approx((0.2, 0.0569, 0.3404), abs=1e-4)
    assert paired_difference(36, 12, 2, 0, 0.95) == pytest.approx((-0.2, -0.3404, -0.0569), abs=1e-4)


def test_a_difference_of_none_is_still_uncertain():
    found = paired_difference(8, 0, 0, 2, 0.95)
    assert found.value == 0 and found.low < -0.01 and found.high > 0.01 and not found.excludes_zero
    assert paired_difference(10, 0, 0, 0, 0.95).high > 0.05


def test_mcnemar_is_the_exact_binomial_test():
    tail = sum(math.comb(14, n) for n in range(3)) / 2**14
    assert mcnemar(2, 12) == mcnemar(12, 2) == pytest.approx(2 * tail)
    assert mcnemar(0, 0) == mcnemar(5, 5) == 1
    assert 0 <= mcnemar(3000, 5000) < 1e-90


def test_intervals_cover_the_truth_as_often_as_they_say():
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        a = random.random(60) < 0.6
        b = np.where(random.random(60) < 0.7, a, random.random(60) < 0.8)
        found = paired_difference(*(int(n.sum()) for n in (a & b, a & ~b, b & ~a, ~a & ~b)), 0.95)
        covered += found.low <= 0.3 * 0.8 + 0.7 * 0.6 - 0.6 <= found.high
    assert 0.92 <= covered / 400 <= 0.985


def test_resamples_that_are_no_number_are_left_out():
    found = percentiles(0.5, np.array([0.4, np.nan, 0.6, np.inf]), 0.9)
    assert (found.low, found.high) == pytest.approx((0.41, 0.59))
    assert math.isnan(percentiles(math.nan, np.array([1.0]), 0.9).low)


def test_a_run_compared_with_itself_differs_in_nothing(a):
    found = compared(a, a)
    assert found.alone == (0, 0) and len(found.pairs[0]) == 60
    for line in found.lines + [tool.failed for tool in found.tools]:
        assert line.difference.value == 0 and not line.difference.excludes_zero
        assert line.a == line.b
    assert all(one == other for _, one, other in found.ends)


def test_numbers_are_those_of_the_prompts_that_both_finished(a, b):
    found = compared(a, b)
    assert found.alone == (10, 0) and len(found.pairs[0]) == 50
    rows_a, rows_b = ([run[n] for n in range(50)] for run in (rows_of(a), rows_of(b)))
    by_name = lines(found)
    for rows, side in ((rows_a, "a"), (rows_b, "b")):
        value = {name: getattr(line, side).value for name, line in by_name.items()}
        assert value["completed"] == pytest.approx(sum(row.completed for row in rows) / 50)
        assert value["prompt tokens a prompt"] == pytest.approx(sum(row.usage.prompt_tokens for row in rows) / 50)
        assert value["cost a prompt"] == pytest.approx(sum(row.usage.cost for row in rows) / 50, rel=1e-5)
        calls, failed = (
            sum(getattr(stat, name) for row in rows for stat in row.tool_stats.values())
            for name in ("count", "failure")
        )
        assert value["tool calls that failed"] == pytest.approx(failed / calls)
        turns = sum(row.reasoning_stats.total_assistant_turns for row in rows)
        reasoned = sum(row.reasoning_stats.turns_with_reasoning for row in rows)
        assert value["assistant turns with reasoning"] == pytest.approx(reasoned / turns)
    tools = {tool.failed.name: tool.calls for tool in found.tools}
    assert tools["terminal"] == tuple(sum(r.tool_stats["terminal"].count for r in rows) for rows in (rows_a, rows_b))


def test_intervals_hold_their_value_and_the_seed_fixes_them(a, b):
    first, again, other = compared(a, b), compared(a, b), compared(a, b, METHOD._replace(seed=1))
    assert first.lines == again.lines and first.lines != other.lines
    for line in first.lines:
        for found in (line.a, line.b, line.difference):
            assert found.low <= found.value <= found.high


def test_a_clear_difference_is_found_and_a_tool_of_one_run_has_no_difference(tmp_path):
    a, b = make_run(tmp_path / "a", 40), make_run(tmp_path / "b", 40)
    a.batch(0, *(a.row(n, tool_stats={"patch": ToolStat(2, 2, 0)}) for n in range(40)))
    ends = ["finished" if n % 4 else "max_turns" for n in range(40)]
    b.batch(0, *(b.row(n, completed=end == "finished", end_reason=end, tool_stats={}) for n, end in enumerate(ends)))
    found = compared(a, b)
    completed = lines(found)["completed"]
    assert completed.difference.excludes_zero and completed.difference.value == -0.25 and completed.p < 0.01
    assert sorted(found.ends) == [("finished", 40, 30), ("max_turns", 0, 10)]
    [patch] = found.tools
    assert patch.calls == (80, 0) and patch.failed.a.value == 0
    assert difference(patch.failed) == "–" and estimate(patch.failed.b, True) == "–"


def test_equal_prompts_are_paired_by_their_ordinal(tmp_path):
    a, b = make_run(tmp_path / "a", 0), make_run(tmp_path / "b", 0)
    for run, done in ((a, [True, False, True]), (b, [True, False])):
        run.set_dataset(["same"] * 3)
        run.batch(0, *reversed([run.row(n, completed=flag) for n, flag in enumerate(done)]))
    found = compared(a, b)
    assert found.alone == (1, 0) and lines(found)["completed"].p == 1


def test_runs_without_a_common_prompt_are_refused(a, tmp_path):
    other = make_run(tmp_path / "other", 0)
    other.set_dataset(["something else"])
    other.batch(0, other.row(0))
    with pytest.raises(UserError, match="no finished prompt in common"):
        compared(a, other)


def test_it_prints_tables_and_writes_a_page(a, b, tmp_path):
    a.write(a.folder.root / "viewer.html")
    b.write(b.folder.run_json, identity(run_name="second", frozen={**identity().frozen, "temperature": 0.1}))
    changed(a, 1, completed=False, end_reason="max_turns")
    page = tmp_path / "pages" / "found.html"
    result = invoke(a.folder.root, b.folder.root, "--page", page)
    assert result.exit_code == 0 and str(page) in result.output
    assert "50 prompts finished in both runs; 10 only in A, 0 only in B" in result.output
    assert re.search(r"temperature\s+0\.7\s+0\.1", result.output) and "McNemar" in result.output
    text = page.read_text()
    assert "<h1>first <span>and</span> second</h1>" in text and "<td>0.7</td><td>0.1</td>" in text
    key = f"{a.prompts[1].prompt_key[:16]}-0"
    assert f'<a href="../a/run/viewer.html#{key}">max_turns</a></td><td>finished</td>' in text
    assert not re.search(r"<script|https?://|src=", text)


def test_hostile_prompts_are_text_on_the_page(a, b, tmp_path):
    changed(a, 3, completed=False, end_reason=HOSTILE)
    page = tmp_path / "page.html"
    assert invoke(a.folder.root, b.folder.root, "--page", page).exit_code == 0
    text = page.read_text()
    assert "Hostile prompt 3 &lt;/script&gt;" in text and "<script" not in text and "<img" not in text


def test_few_prompts_come_with_a_warning(tmp_path):
    a = make_run(tmp_path / "a", 4)
    result = invoke(a.folder.root, a.folder.root)
    assert "under 20 prompts" in " ".join(result.output.split())
    assert (tmp_path / "a" / "run_and_run.html").exists()


def test_a_run_that_is_not_there_is_named(a, tmp_path):
    result = invoke(a.folder.root, "nowhere")
    assert result.exit_code == 2 and "there is no run nowhere" in result.output
    (tmp_path / "empty").mkdir()
    result = invoke(a.folder.root, tmp_path / "empty")
    assert result.exit_code == 2 and "run.json is missing" in result.output
