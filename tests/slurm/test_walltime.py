"""Jobs that may not take as long as their shards do. They wait more than they work, so they come last."""

import pytest

from slurm.conftest import LATENCY_S, Make
from slurm.runs import SMALL, Run

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1200)]


def test_progress_inside_a_shard_is_kept_where_its_walltime_is_too_short(slow_run: Run) -> None:
    assert slow_run.heads[0].wait(600) == 0, slow_run.said()
    assert slow_run.problem() == ""
    attempts = 1 + slow_run.said().count("Trying to restart")
    assert attempts > 1 and slow_run.asked().total() < 120 + attempts, "an attempt loses one prompt at most, if any"
    assert "the time of this job is over" in slow_run.said()


@pytest.mark.usefixtures("by_hand")
def test_a_prompt_longer_than_the_walltime_is_not_tried_for_ever(make: Make) -> None:
    run = make(1)
    run.server.control(script={"rules": [{"regex": run.tag, "latency": 300}], "latency": LATENCY_S, "steps": 0})
    assert run.snakemake(resources=f"{SMALL} run_batch:runtime=1", retries=3).wait(900) == 1
    assert run.asked() == {run.prompts[0]: 2}
    assert "attempts at this shard finished no prompt" in run.said()
