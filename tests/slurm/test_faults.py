"""What happens to jobs, nodes and head processes of a run, and that nothing is paid twice for it."""

import random
import signal

import pytest

from slurm.cluster import Node, ask, jobs, restart_controller, running, wait_for
from slurm.conftest import LATENCY_S, Make
from slurm.runs import Run

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(2400)]
NODE_KILLS = 20
CONCURRENCY = 2


@pytest.mark.usefixtures("virtual")
def test_a_cancelled_job_a_lost_node_and_a_killed_head_cost_only_what_was_in_flight(make: Make, slow_run: Run) -> None:
    run = make(48, batch_size=6, concurrency=CONCURRENCY)
    head = run.snakemake()
    run.wait_for_rows(2)
    spared = {job.node for job in running(slow_run.work)}
    node = Node(next(job.node for job in running(run.work) if job.node not in spared))
    victim = next(job for job in running(run.work) if job.node != node.name)
    ask("scancel", victim.id)
    lost = 1 + sum(job.node == node.name for job in running(run.work))
    node.kill()
    head.kill()
    head.wait()
    assert jobs(run.work), "the head's jobs live on"
    node.revive()
    assert run.snakemake().wait(300) == 0, run.said()
    assert run.problem() == ""
    assert run.asked().total() <= 48 + lost * CONCURRENCY
    assert jobs(run.work) == []


@pytest.mark.usefixtures("by_hand", "virtual")
def test_nothing_is_paid_twice_over_many_lost_nodes(make: Make) -> None:
    chance = random.Random(6)
    run = make(600, batch_size=30, concurrency=CONCURRENCY)
    run.server.control(script={"rules": [{"regex": run.tag, "latency": 2.0}], "latency": LATENCY_S, "steps": 0})
    head = run.snakemake(retries=2 * NODE_KILLS)
    lost = 0
    for number in range(NODE_KILLS):
        run.wait_for_rows(20 * (number + 1), 400)
        name = chance.choice(wait_for(run.at_work, 400, "a job in the middle of its shard")).node
        lost += sum(job.node == name for job in running(run.work))
        node = Node(name)
        node.kill()
        node.revive()
    assert head.wait(900) == 0, run.said()
    assert run.problem() == ""
    assert 600 <= run.asked().total() <= 600 + lost * CONCURRENCY


@pytest.mark.usefixtures("by_hand", "virtual")
def test_a_controller_that_is_away_for_a_while_loses_no_job(make: Make) -> None:
    run = make(24, batch_size=6, concurrency=1)
    head = run.snakemake()
    run.wait_for_rows(1)
    restart_controller(down_s=5)
    assert head.wait(300) == 0 and run.problem() == "", run.said()
    assert set(run.asked().values()) == {1}


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_batch_runner_ends_its_jobs_in_order(make: Make, number: signal.Signals) -> None:
    run = make(60, batch_size=20, concurrency=1)
    head = run.batch_runner()
    run.wait_for_rows(3)
    head.send_signal(number)
    assert head.wait(120) == 128 + number, run.said()
    wait_for(lambda: not jobs(run.work), what="an empty queue")
    assert "stopped by signal" in run.shard_logs()
    again = run.batch_runner("--resume")
    assert again.wait(300) == 0 and run.problem() == "", run.said()
    assert run.asked().total() <= 60 + 3
