import msgspec
import pytest
from check_run import main
from compute_statistics import main as compute
from filter_trajectories import main as filter_rows
from results_files import Run, failure, invoke
from trajectile.results.verdict import Verdict
from trajectile.run_folder.lease import Lease


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path, [f"prompt {n}" for n in range(10)])


def check(run, *options, max_attempts=0):
    assert invoke(filter_rows, run, dataset=False).exit_code == 0
    assert invoke(compute, run, "--max_attempts", str(max_attempts)).exit_code == 0
    result = invoke(main, run, *options, dataset=False)
    return result, msgspec.json.decode(run.folder.verdict.read_bytes(), type=Verdict)


def test_a_finished_run_holds_and_names_no_command(run):
    run.batch(0, *(run.row(n) for n in range(10)))
    result, verdict = check(run)
    assert result.exit_code == 0
    assert verdict == Verdict("run", 10, 10, 0, 0, 0, 0.0, 0.1, True)
    assert "10 of 10 prompts finished" in result.output and "command" not in result.output


def test_few_failures_are_reported_with_the_command_that_goes_on(run):
    run.batch(0, *(run.row(n) for n in range(9)))
    run.ledger(0, failure(run.prompts[9], "rate_limit", 1), failure(run.prompts[0], "timeout", 2))
    result, verdict = check(run)
    assert result.exit_code == 0
    assert verdict == Verdict("run", 10, 9, 1, 0, 1, 0.1, 0.1, True)
    assert "1 (rate_limit 1)" in result.output
    assert result.output.rstrip().endswith("owed:      1; to run them, give the same command again")


def test_too_many_failures_end_with_status_1_after_the_verdict_is_written(run):
    run.batch(0, *(run.row(n, reasoning="") for n in range(7)))
    run.ledger(0, *(failure(run.prompts[n], "timeout", n) for n in (8, 9)))
    result, verdict = check(run)
    assert result.exit_code == 1
    assert verdict == Verdict("run", 10, 7, 3, 0, 2, 0.2, 0.1, False)
    assert "discarded: 7 (no_reasoning 7)" in result.output
    assert "20.0% of the prompts failed" in result.output
    result, verdict = check(run, "--max_failed_fraction", "0.2")
    assert result.exit_code == 0 and verdict.holds


def test_prompts_that_reached_max_attempts_are_not_owed_and_their_command_is_named(run):
    run.batch(0, *(run.row(n) for n in range(6)))
    run.ledger(0, *(failure(run.prompts[n], "timeout", n) for n in (0, 0, 6, 6, 7, 8)))
    run.ledger(1, failure(run.prompts[8], "timeout", 30))
    result, verdict = check(run, max_attempts=2)
    assert (verdict.finished, verdict.owed, verdict.given_up, verdict.failed) == (6, 2, 2, 3)
    owed, given_up = result.output.splitlines()[-2:]
    assert owed == "  owed:      2; to run them, give the same command again"
    again = "python scripts/batch_runner.py --run_name=run --retry_failed"
    assert given_up == f"  given up:  2 after max_attempts; to try them once more: {again}"
    result, verdict = check(run, max_attempts=0)
    assert (verdict.owed, verdict.given_up) == (4, 0) and "given up" not in result.output


def test_the_command_says_that_it_needs_the_ephemeral_system_prompt_again(run):
    run.batch(0, *(run.row(n) for n in range(9)))
    run.ledger(0, failure(run.prompts[9], "timeout", 1))
    identity = msgspec.json.decode(run.folder.run_json.read_bytes())
    run.write(run.folder.run_json, identity | {"frozen": {"ephemeral_system_prompt": "5ecd3f"}})
    result, _ = check(run, max_attempts=1)
    assert result.output.rstrip().endswith("--retry_failed (and the same --ephemeral_system_prompt)")


def test_a_run_of_nothing_holds(tmp_path):
    result, verdict = check(Run(tmp_path, []))
    assert result.exit_code == 0 and verdict.holds and verdict.failed_fraction == 0.0


def test_only_journals_that_are_wholly_in_their_batch_file_are_dropped(run):
    run.batch(0, run.row(0), run.row(1))
    run.journal(0, run.row(1), run.row(0), tail=b'{"torn')
    run.write(run.folder.times(0), {"sessions": [[1.0, 2.0]]})
    run.batch(1, run.row(2), tail=msgspec.json.encode(run.row(3))[:-5])
    run.journal(1, run.row(3), run.row(2))
    run.journal(2, run.row(4))
    run.journal(3)
    run.batch(4, run.row(5))
    run.journal(4, run.row(5))
    lease = Lease(run.folder.shard_lease(4))
    assert lease.acquire() is None
    check(run)
    assert run.folder.numbers("journal") == [1, 2, 3, 4]
    assert run.folder.times(0).exists()
    lease.release()
    check(run)
    assert run.folder.numbers("journal") == [1, 2, 3]


def test_without_statistics_it_says_what_to_run(run):
    result = invoke(main, run, dataset=False)
    assert result.exit_code == 2 and "run compute_statistics first" in result.stderr
