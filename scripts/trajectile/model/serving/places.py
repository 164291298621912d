"""Where servers can be shared, and where they keep their state."""

import os
import platform
import socket
import tempfile
from pathlib import Path

from trajectile.errors import UserError
from trajectile.run_folder.lease import Owner
from trajectile.scheduler import job_id, step_id


def in_job_step() -> bool:
    """Whether this is a step of a SLURM job, at whose end SLURM ends all that the step started."""
    return bool(step_id())


def is_here(owner: Owner) -> bool:
    """Whether a lease is held in this place: on this machine and, on a cluster, in this job."""
    return owner.host == socket.gethostname() and owner.job_id == job_id()


def place() -> str:
    """Name what can share a server: a machine; on a cluster a job or, within it, a step.

    A scheduler kills what a job or step started when it ends, and gives each job GPUs of its own.
    """
    return "-".join(filter(None, [platform.node(), job_id(), step_id()]))


def runtime_folder() -> Path:
    """A folder of this user on the machine's own disk, closed to others."""
    folder = Path(tempfile.gettempdir()) / f"trajectile-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise UserError(f"{folder} belongs to somebody else: set TMPDIR to a folder of your own")
    folder.chmod(0o700)
    return folder
