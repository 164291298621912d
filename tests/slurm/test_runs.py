"""Whole runs on the cluster: the same results as on one machine, and no planning on a node."""

import signal
from pathlib import Path

import pytest
from faults.evidence import prompt_of

from slurm.cluster import ask, jobs, running, wait_for
from slurm.conftest import Make

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]
MANY = 1010
WITNESS = Path(__file__).parent / "witness"


def test_two_runs_side_by_side_make_what_one_machine_makes_and_plan_on_no_node(make: Make) -> None:
    here, runner, plain = make(12, batch_size=4), make(12, batch_size=6), make(12, batch_size=4)
    witness = plain.work / "opened.txt"
    plain.environment |= {"PYTHONPATH": str(WITNESS), "WITNESS_LOG": str(witness)}
    for run in (runner, plain):
        run.tag, run.prompts = here.tag, here.prompts
        run.write(run.prompts)
    heads = [runner.batch_runner(), plain.snakemake()]
    wait_for(lambda: running(plain.work), what="a job")
    plain.write([*plain.prompts[6:], "one more"])  # a run goes on with the rows that it was planned with
    assert [head.wait(300) for head in heads] == [0, 0], runner.said() + plain.said()

    assert here.snakemake("--cores", "2").wait(300) == 0, here.said()
    rows = here.comparable()
    assert [prompt_of(row) for row in rows] == here.prompts and runner.comparable() == rows
    assert "trajectile: " in runner.said() and "localrule check_run" in plain.said()
    assert set(here.asked().values()) == {3}, "each of the three runs asked once"
    opened = witness.read_text().splitlines()
    assert any(path.endswith("rollout.smk") for path in opened)
    assert [path for path in opened if path.endswith("prompts.jsonl") or "data/r/" in path] == []


@pytest.mark.usefixtures("by_hand")
@pytest.mark.timeout(2400)
def test_two_hundred_shards_on_four_nodes(make: Make) -> None:
    run = make(400, batch_size=2)
    assert run.snakemake().wait(2300) == 0, run.said()
    assert run.problem() == "" and set(run.asked().values()) == {1}


@pytest.mark.usefixtures("by_hand", "virtual")
def test_more_jobs_wait_in_the_queue_than_an_array_may_hold(make: Make) -> None:
    """H24. No node takes them: what happens to jobs that run is the matter of the other tests."""
    run = make(MANY, batch_size=1)
    ask("scontrol", "update", "nodename=n[1-4]", "state=drain", "reason=full")
    try:
        head = run.snakemake(at_once=MANY)
        wait_for(lambda: len(jobs(run.work)) == MANY, 400, "all jobs in the queue")
        head.send_signal(signal.SIGINT)
        assert head.wait(200) != 0
        wait_for(lambda: jobs(run.work) == [], 60, "an empty queue")
    finally:
        ask("scontrol", "update", "nodename=n[1-4]", "state=resume")
    assert "Traceback" not in run.said() and not run.asked()
