import msgspec
import pytest
from compute_statistics import main
from filter_trajectories import main as filter_rows
from results_files import Run, failure, invoke, lines_of
from trajectile.results.shape import Statistics
from trajectile.results.verdict import read_statistics
from trajectile.rows import ToolStat, Usage
from trajectile.run_folder.journal import Failure


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path, [f"prompt {n}" for n in range(10)])


def compute(run, *options):
    assert invoke(filter_rows, run, dataset=False).exit_code == 0
    result = invoke(main, run, *options)
    assert result.exit_code == 0, result.output
    return read_statistics(run.folder)


def test_all_finished_rows_count_discarded_superseded_and_journalled_ones_too(run):
    run.batch(0, run.row(0, seconds=1.0), run.row(1, reasoning="", seconds=2.0))
    run.batch(5, run.row(2, completed=False, partial=True, end_reason="max_turns", seconds=3.0))
    run.journal(6, run.row(3, calls=("terminal", "read_file"), seconds=4.0), tail=b"{torn")
    run.set_dataset([f"prompt {n}" for n in range(1, 10)])
    found = compute(run)
    assert (found.run_name, found.distribution, found.model, found.batch_size) == ("run", "default", "m/1", 2)
    assert (found.total_prompts, found.total_batches) == (9, 2)
    assert (found.completed, found.partial, found.superseded, found.owed) == (3, 1, 1, 6)
    assert found.discarded.total == 1 and found.discarded.by_reason == {"no_reasoning": 1}
    assert found.damaged_lines == 1
    assert found.end_reasons == {"finished": 3, "max_turns": 1}
    assert msgspec.to_builtins(found.tokens) == {"prompt": 400, "completion": 80, "reasoning": 40, "cached": 20}
    assert (found.cost, found.api_calls) == (1.0, 9)
    reasoning = found.reasoning_statistics
    assert (reasoning.total_assistant_turns, reasoning.turns_with_reasoning) == (9, 7)
    assert (reasoning.turns_without_reasoning, reasoning.coverage) == (2, 0.7778)
    assert found.latency_seconds == {"p50": 2.5, "p90": 3.7, "p99": 3.97}
    assert found.turns == {"p50": 2.0, "p90": 2.7, "p99": 2.97}


def test_tools_have_rates_and_unused_ones_are_zero(run):
    stats = {"terminal": ToolStat(3, 2, 1), "read_file": ToolStat(), "web_search": ToolStat(1, 0, 1)}
    run.batch(0, run.row(0), run.row(1, tool_stats=stats))
    tools = compute(run).tool_statistics
    assert list(tools) == ["read_file", "terminal", "web_search"]
    assert msgspec.structs.astuple(tools["terminal"]) == (4, 3, 1, 0.75, 0.25)
    assert msgspec.structs.astuple(tools["read_file"]) == (0, 0, 0, 0.0, 0.0)
    assert msgspec.structs.astuple(tools["web_search"]) == (1, 0, 1, 0.0, 1.0)


def test_failed_counts_owed_prompts_by_their_last_failure(run):
    prompts = run.prompts
    run.batch(0, run.row(0))
    run.ledger(0, failure(prompts[0], "timeout", 1), failure(prompts[1], "timeout", 30))
    run.ledger(
        2,
        failure(prompts[1], "rate_limit", 2),
        failure(prompts[2], "rate_limit", 20),
        failure(prompts[3], "timeout", 21, prompt_key="0" * 64),
        tail=b'{"torn',
    )
    run.ledger(10, failure(prompts[2], "sandbox_died", 40))
    found = compute(run)
    assert found.failed.total == 2
    assert found.failed.by_kind == {"timeout": 1, "sandbox_died": 1}
    assert (found.attempts_failed, found.owed, found.damaged_lines) == (6, 9, 1)


def test_ledgers_are_merged_in_the_order_of_time(run):
    prompts = run.prompts
    run.ledger(0, failure(prompts[0], "late", 50), failure(prompts[1], "first\u2028line", 1))
    run.ledger(1, failure(prompts[2], "zone", 0, timestamp="2026-11-29T18:10:00+02:00"))
    compute(run)
    kinds = [found.kind for found in lines_of(run.folder.failures, Failure)]
    assert kinds == ["first\u2028line", "zone", "late"]


def test_an_empty_run_has_statistics_of_zeros(run):
    found = compute(run)
    assert (found.completed, found.owed, found.total_prompts, found.cost) == (0, 10, 10, 0.0)
    assert found.latency_seconds == {"p50": 0.0, "p90": 0.0, "p99": 0.0}
    assert found.reasoning_statistics.coverage == 0.0
    assert found.end_reasons == {} and found.failed.total == 0
    assert run.folder.failures.read_bytes() == b""


def test_an_empty_dataset_is_no_division_by_zero(tmp_path):
    found = compute(Run(tmp_path, []))
    assert (found.total_prompts, found.owed) == (0, 0)


def test_the_keys_come_in_their_documented_order(run):
    compute(run)
    assert list(msgspec.json.decode(run.folder.statistics.read_bytes())) == [
        *("run_name", "distribution", "model", "batch_size", "total_prompts", "total_batches"),
        *("completed", "partial", "discarded", "failed", "attempts_failed", "superseded", "owed", "given_up"),
        *("damaged_lines", "duration_seconds", "tool_statistics", "reasoning_statistics", "tokens"),
        *("cost", "api_calls", "trimmed_results", "latency_seconds", "turns", "end_reasons"),
    ]
    assert list(Statistics.__struct_encode_fields__)[:2] == ["run_name", "distribution"]


def test_the_printed_tables_show_rates_reasons_and_kinds(run):
    run.batch(0, run.row(0), run.row(1, reasoning=""))
    run.ledger(0, failure(run.prompts[5], "rate_limit", 1))
    run.write(run.folder.times(0), {"sessions": [[10.0, 22.5]]})
    invoke(filter_rows, run, dataset=False)
    output = invoke(main, run).output
    lines = {line.split()[0]: line.split()[1:] for line in output.splitlines() if line.split()}
    assert lines["terminal"] == ["2", "2", "0", "100.0%", "0.0%"]
    assert "read_file" not in lines
    assert lines["discarded"] == ["1", "(no_reasoning", "1)"]
    assert "turns a prompt    p50 2.0, p90 2.0, p99 2.0" in output
    assert "seconds a prompt  p50 2.0, p90 2.0, p99 2.0" in output
    assert "1 (rate_limit 1)" in output and "50.0% of 4 assistant turns" in output and "12.5 s" in output


def test_large_numbers_are_printed_with_their_thousands_apart(run):
    stats = {"terminal": ToolStat(12_345, 12_000, 345)}
    row = run.row(0, tool_stats=stats, usage=Usage(1_234_567, 20_000, 0, 45_678, 4321.5), seconds=1234.5)
    run.batch(0, row)
    invoke(filter_rows, run, dataset=False)
    output = invoke(main, run).output
    assert "12,345   12,000      345" in output
    assert "1,234,567 prompt (45,678 cached), 20,000 completion" in output
    assert "cost 4,321.5000" in output and "p50 1,234.5, p90 1,234.5" in output


def test_statistics_without_filter_are_refused(run):
    result = invoke(main, run)
    assert result.exit_code == 2 and "run filter_trajectories first" in result.stderr
    assert not run.folder.statistics.exists()
