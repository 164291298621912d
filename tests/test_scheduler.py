"""The job that a process is part of, and what goes by it: where servers are shared and how leases name their owner."""

from pathlib import Path

import pytest
from trajectile.model.serving.places import in_job_step, is_here, place
from trajectile.run_folder.lease import Lease
from trajectile.scheduler import job_id

VARIABLES = ["SLURM_JOB_ID", "SLURM_STEP_ID", "PBS_JOBID", "LSB_JOBID", "LSB_JOBINDEX", "JOB_ID", "SGE_TASK_ID"]
JOBS = [
    ({}, ""),
    ({"SLURM_JOB_ID": "17"}, "17"),
    ({"PBS_JOBID": "17[3].pbs01"}, "17[3].pbs01"),
    ({"LSB_JOBID": "17"}, "17"),
    ({"LSB_JOBID": "17", "LSB_JOBINDEX": "0"}, "17"),
    ({"LSB_JOBID": "17", "LSB_JOBINDEX": "3"}, "17.3"),
    ({"JOB_ID": "17", "SGE_TASK_ID": "undefined"}, "17"),
    ({"JOB_ID": "17", "SGE_TASK_ID": "3"}, "17.3"),
    ({"JOB_ID": "17"}, ""),
    ({"JOB_ID": "17", "SGE_ROOT": "/opt/sge"}, ""),
]


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("variables", "wanted"), JOBS, ids=str)
def test_a_job_is_known_by_what_its_scheduler_sets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], wanted: str
) -> None:
    alone, outside = place(), Lease(tmp_path / "lease").owner
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert job_id() == wanted == Lease(tmp_path / "lease").owner.job_id
    assert place() == (f"{alone}-{wanted}" if wanted else alone)
    assert is_here(outside) == (not wanted) and is_here(Lease(tmp_path / "lease").owner)
    assert not in_job_step()


def test_a_step_has_a_place_of_its_own_within_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = place()
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("SLURM_STEP_ID", "2")
    assert place() == f"{alone}-17-2" and in_job_step()
