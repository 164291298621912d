"""The text of serve_command: a bash script in which a few names in braces stand for what the run decides."""

import random
import re
import shlex
import socket
import subprocess

LOOPBACK = "127.0.0.1"
PORTS = range(20000, 32768)  # below those that the kernel gives to outgoing connections
PORT_TRIES = 100
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


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    for port in random.sample(PORTS, PORT_TRIES):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise OSError("no free port was found")
