"""The server that a run's own serve_command starts on the machine of a shard."""

import hashlib
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trajectile.model.serving.folder import Endpoint, ServerFolder
from trajectile.model.serving.places import in_job_step, place, runtime_folder
from trajectile.model.serving.sharing import Server, shared_server
from trajectile.run_folder.paths import RunFolder

NAME = "the model server of serve_command"
IDLE_S = 5.0


@asynccontextmanager
async def served_endpoint(command: str, model: str, run: RunFolder, timeout_s: float) -> AsyncIterator[Endpoint]:
    """The machine's server for a run, started where there is none, and kept alive while the context is open.

    Its log goes to the run's folder. UserError: it does not start within `timeout_s` seconds. ServerDied: it ended
    while the context was open.
    """
    folder = _folder(command, model, run.root)
    log = run.server_logs / f"{place()}.log"
    idle = 0 if in_job_step() else IDLE_S
    module = [sys.executable, "-m", "trajectile.model.serving.keeper", str(folder.path), command, "--model", model]
    files = ["--log", str(log), "--lease", str(run.lease)]
    numbers = ["--timeout", str(timeout_s), "--idle", str(idle)]
    async with shared_server(Server(NAME, folder, [*module, *files, *numbers], log, timeout_s, os.environ)) as endpoint:
        yield endpoint


def _folder(command: str, model: str, run: Path) -> ServerFolder:
    identity = hashlib.sha256(f"{run.absolute()}\0{model}\0{command}".encode()).hexdigest()[:16]
    return ServerFolder(runtime_folder() / place() / identity)
