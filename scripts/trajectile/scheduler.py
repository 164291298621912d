"""The job of a cluster's scheduler that this process is part of, by the variables that SLURM, PBS, LSF and SGE set."""

import os

NO_ARRAY = ("", "0", "undefined")


def job_id() -> str:
    """Name the job, and the task of an array where all of them have the job's number; "" outside of jobs."""
    if alone := os.environ.get("SLURM_JOB_ID") or os.environ.get("PBS_JOBID"):
        return alone
    if lsf := os.environ.get("LSB_JOBID"):
        return _with_task(lsf, os.environ.get("LSB_JOBINDEX", ""))
    if task := os.environ.get("SGE_TASK_ID"):  # JOB_ID alone may come from anywhere, this one is in every job of SGE
        return _with_task(os.environ.get("JOB_ID", ""), task)
    return ""


def step_id() -> str:
    """Name the step of a SLURM job, "" where there is none; other schedulers have none."""
    return os.environ.get("SLURM_STEP_ID", "")


def _with_task(job: str, task: str) -> str:
    return job if task in NO_ARRAY else f"{job}.{task}"
