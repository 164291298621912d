"""When the scheduler will end the job that a shard runs in, so that the shard can end in order before it."""

import logging
import os
import subprocess
import time
from contextlib import suppress
from typing import NamedTuple

CLOSING_S = 20.0  # what prompts in flight have to close their sandboxes
MARGIN_PART, CLOSING_PART = 4, 8  # margin and closing take a fourth and an eighth of a job's time, at most
ASKING_S = 30.0
Times = tuple[float | None, float | None]
log = logging.getLogger(__name__)


class Walltime(NamedTuple):
    """In epoch seconds: no prompt is begun from `last_start` on, those in flight are given up at `give_up`."""

    last_start: float
    give_up: float
    end: float


def walltime(margin_s: float) -> Walltime | None:
    """Return the limits of the job that this process is part of, None where no end of it is known. Asks SLURM."""
    job = os.environ.get("SLURM_JOB_ID", "")
    start, end = _told() or (_asked(job) if job else (None, None))
    if end is None:
        return None
    length = end - (start or time.time())
    give_up = end - min(CLOSING_S, length / CLOSING_PART)
    return Walltime(min(end - min(margin_s, length / MARGIN_PART), give_up), give_up, end)


def _told() -> Times | None:
    """SLURM sets start and end in the environment from 23.02 on, and Snakemake's job steps drop them."""
    start, end = (_seconds(os.environ.get(f"SLURM_JOB_{name}_TIME", "")) for name in ("START", "END"))
    return (start, end) if end else None


def _asked(job: str) -> Times:
    command = ["squeue", "--noheader", "--jobs", job, "--format", "%S %e"]
    environment = {**os.environ, "SLURM_TIME_FORMAT": "%s"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=ASKING_S, check=True)
        start, end = done.stdout.split()
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        log.warning("SLURM does not say when this job ends, so it will not end in order before that: %s", error)
        return None, None
    return _seconds(start), _seconds(end)


def _seconds(text: str) -> float | None:
    """Return a time that is one, not such as N/A, for a job without an end."""
    with suppress(ValueError):
        return float(text)
    return None
