"""When the scheduler will end the job that a shard runs in, so that the shard can end in order before it."""

import os
import subprocess
import time
from contextlib import suppress
from typing import NamedTuple

CLOSING_S = 20.0  # what prompts in flight have to close their sandboxes
MARGIN_PART, CLOSING_PART = 4, 8  # margin and closing take a fourth and an eighth of the time there is, at most
ASKING_S = 30.0


class Walltime(NamedTuple):
    """In epoch seconds: no prompt is begun from `last_start` on, those in flight are given up at `give_up`."""

    last_start: float
    give_up: float
    end: float


def walltime(margin_s: float) -> Walltime | None:
    """Return the limits of the job that this process is part of, None where no end of it is known. Asks SLURM."""
    end = _job_end()
    if end is None:
        return None
    left = max(0.0, end - time.time())
    give_up = end - min(CLOSING_S, left / CLOSING_PART)
    return Walltime(min(end - min(margin_s, left / MARGIN_PART), give_up), give_up, end)


def _job_end() -> float | None:
    job = os.environ.get("SLURM_JOB_ID", "")
    told = os.environ.get("SLURM_JOB_END_TIME") or (_asked(job) if job else "")
    with suppress(ValueError):
        return float(told)
    return None


def _asked(job: str) -> str:
    """Ask the controller: SLURM sets the end in the environment from 23.02 on, and Snakemake's job steps drop it."""
    command = ["squeue", "--noheader", "--jobs", job, "--format", "%e"]
    with suppress(OSError, subprocess.SubprocessError):
        environment = {**os.environ, "SLURM_TIME_FORMAT": "%s"}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=ASKING_S).stdout.strip()
    return ""
