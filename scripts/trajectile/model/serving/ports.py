"""The port of a server: one that is free, and whether it is the server that answers at it."""

import random
import socket
import subprocess
from contextlib import suppress

import psutil

LOOPBACK = "127.0.0.1"
ANSWERING = (LOOPBACK, "0.0.0.0", "::")  # addresses at which who listens is reached by the loopback
PORTS = range(20000, 32768)  # below those that the kernel gives to outgoing connections
PORT_TRIES = 100


def free_port() -> int:
    """A port of the loopback interface that nobody has."""
    for port in random.sample(PORTS, PORT_TRIES):
        if is_free(port):
            return port
    raise OSError("no free port was found")


def is_free(port: int) -> bool:
    """Whether nobody listens on a port, or has bound it to listen later as vLLM does."""
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def stranger_at(port: int, server: "subprocess.Popen[bytes]") -> str:
    """Name a process that listens on the server's port and is older than it, "" where none is seen.

    Younger ones may serve for it though they are not below it, as a container engine's do. Where the system does not
    tell whose a port is, as for processes of other users, none is seen.
    """
    with suppress(psutil.Error):
        began = psutil.Process(server.pid).create_time()
        for process in _listeners(port):
            if process.create_time() < began:
                return f"process {process.pid} ({process.name()})"
    return ""


def _listeners(port: int) -> list[psutil.Process]:
    places = [(address, port) for address in ANSWERING]
    found = psutil.net_connections("tcp")
    return [psutil.Process(at.pid) for at in found if at.pid and at.status == psutil.CONN_LISTEN and at.laddr in places]
