"""This machine's Python for containers, whose images have none: folders to mount, and the command that finds it."""

import re
import subprocess
import sys
from pathlib import Path

PYTHON, LIBRARIES = "/opt/python", "/opt/libraries"
FIND = f"export PATH={PYTHON}/bin:$PATH LD_LIBRARY_PATH={LIBRARIES}"


def mounts() -> str:
    """The value of sandbox_mounts."""
    listed = subprocess.run(["ldd", sys.executable], capture_output=True, text=True, check=True).stdout
    [libc] = re.findall(r"\S+/libc\.so\.\S+", listed)
    return f"{sys.base_prefix}:{PYTHON},{Path(libc).parent}:{LIBRARIES}"
