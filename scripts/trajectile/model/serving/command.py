"""The text of serve_command: a bash script in which a few names in braces stand for what the run decides."""

import re
import shlex
import subprocess

from trajectile.model.serving.ports import LOOPBACK

PLACEHOLDER = re.compile(r"(?<!\$)\{(port|host|model)\}")


def filled(command: str, *, port: int, model: str) -> str:
    """Put port, host and model into a command, quoted for the shell; all other braces stay as they are."""
    values = {"port": str(port), "host": LOOPBACK, "model": shlex.quote(model)}
    return PLACEHOLDER.sub(lambda match: values[match[1]], command)


def syntax_problem(command: str) -> str:
    """Return what bash says of a command that it cannot read, "" where it can; nothing is run."""
    checked = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True)
    said = checked.stderr.strip().splitlines()
    return said[0].partition(": ")[2] if checked.returncode and said else ""
