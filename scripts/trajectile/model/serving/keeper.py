"""The process that keeps the server of a serve_command, until no user is left. Started by served.py, not by hand.

It starts the command, publishes its endpoint once it answers, and ends the whole tree of its processes.
"""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from trajectile.model.serving.attendance import SWEEP_S, Attendance
from trajectile.model.serving.command import filled
from trajectile.model.serving.folder import Endpoint, ServerFolder
from trajectile.model.serving.locks import POLL_S
from trajectile.model.serving.logs import BoundedLog
from trajectile.model.serving.ports import LOOPBACK, free_port, stranger_at
from trajectile.model.serving.probe import REFUSALS, problem
from trajectile.model.serving.tree import guarded, start, stop_tree

KEY_NAMES = ("VLLM_API_KEY", "LLAMA_API_KEY", "TRAJECTILE_SERVE_KEY")  # where servers look for the key they ask for
NOT_FOR_SERVERS = frozenset(f"TRAJECTILE_{role}API_KEY" for role in ("", "VISION_", "IMAGE_", "TTS_"))
PROBE_EVERY_S = 1.0  # after the first second: servers log each question
TOLERATED_REFUSALS = 3
KEY_ADVICE = 'take --api-key out of serve_command, or write --api-key "$TRAJECTILE_SERVE_KEY"'
LIBRARY = str(Path(__file__).parents[3])


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("command")
@click.option("--model", required=True, help="Stands for {model} in the command.")
@click.option("--log", type=click.Path(path_type=Path), required=True, help="File that the server's output goes to.")
@click.option("--lease", type=click.Path(path_type=Path), required=True, help="Lease of the process that starts users.")
@click.option("--timeout", type=float, required=True, help="Seconds in which the server has to answer.")
@click.option("--idle", type=float, required=True, help="Seconds without a user after which the server ends.")
def main(folder: Path, command: str, model: str, log: Path, lease: Path, timeout: float, idle: float) -> None:
    """Serve by COMMAND for the users registered in FOLDER."""
    attendance = Attendance(ServerFolder(folder), idle, lease)
    guarded(Keeper(ServerFolder(folder), attendance, timeout, command, model, log).run)


class Keeper:
    """Runs one server from its start to its end."""

    def __init__(
        self, folder: ServerFolder, attendance: Attendance, timeout_s: float, command: str, model: str, log: Path
    ) -> None:
        self.folder = folder
        self.attendance = attendance
        self.timeout_s = timeout_s
        self.port = free_port()
        self.script = filled(command, port=self.port, model=model)
        self.log, self.bounded = log, BoundedLog(log)
        self.endpoint = Endpoint(f"http://{LOOPBACK}:{self.port}/v1", secrets.token_urlsafe(24), os.getpid())

    def run(self) -> None:
        """Serve, and end with the last user, the server, or a signal."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: sys.exit())
        process = start(self.script, self.log, environment(os.environ, self.endpoint.api_key))
        try:
            if self._becomes_ready(process):
                self.folder.publish(self.endpoint)
                self._serve(process)
        finally:
            self.folder.state.unlink(missing_ok=True)
            stop_tree()
            self.folder.remove(by_server=True)

    def _becomes_ready(self, process: "subprocess.Popen[bytes]") -> bool:
        began, refusals = time.monotonic(), 0
        while not self.attendance.is_over():
            self.bounded.keep_short()
            if (status := process.poll()) is not None:
                return self._fails(f"ended at its start {_in_words(status)}")
            if not (lacking := problem(self.endpoint)):
                return self._has_its_port(process)
            refusals = refusals + 1 if lacking in REFUSALS else 0
            if refusals > TOLERATED_REFUSALS:
                return self._has_its_port(process) and self._fails(f"refuses its key ({lacking}): {KEY_ADVICE}")
            waited = time.monotonic() - began
            if waited > self.timeout_s:
                return self._fails(f"was not ready within {self.timeout_s:g} s (serve_timeout): {lacking}")
            with suppress(subprocess.TimeoutExpired):
                process.wait(POLL_S if waited < PROBE_EVERY_S and not refusals else PROBE_EVERY_S)
        return False

    def _has_its_port(self, process: "subprocess.Popen[bytes]") -> bool:
        stranger = stranger_at(self.port, process)
        return not stranger or self._fails(f"does not have port {self.port} to itself, {stranger} took it; start again")

    def _fails(self, how: str) -> bool:
        self.folder.ending.write_text(how)
        return False

    def _serve(self, process: "subprocess.Popen[bytes]") -> None:
        while not self.attendance.is_over():
            self.bounded.keep_short()
            if (status := process.poll()) is not None:
                self.folder.ending.write_text(f"ended while it was in use, {_in_words(status)}")
                return
            time.sleep(SWEEP_S)


def _in_words(status: int) -> str:
    return f"by signal {-status}" if status < 0 else f"with status {status}"


def environment(own: Mapping[str, str], key: str) -> dict[str, str]:
    """The server's environment: this process's, with a key for it and without what is not its business."""
    kept = {name: value for name, value in own.items() if name not in NOT_FOR_SERVERS}
    search = [path for path in kept.pop("PYTHONPATH", "").split(os.pathsep) if path not in ("", LIBRARY)]
    if search:
        kept["PYTHONPATH"] = os.pathsep.join(search)
    return kept | dict.fromkeys(KEY_NAMES, key)


if __name__ == "__main__":
    main()
