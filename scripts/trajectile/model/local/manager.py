"""The shared server of a local model: the first user starts it, others find it, the last one's end stops it."""

import asyncio
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trajectile.errors import UserError
from trajectile.model.local.catalogue import PREFIX, Entry, resolve
from trajectile.model.local.locks import POLL_S, file_lock, try_lock
from trajectile.model.local.servers import Endpoint, ServerFolder, server_folder
from trajectile.model.local.weights import ensure_entry, ensure_weights, require_engine

__all__ = ["Endpoint", "ensure_weights", "local_endpoint"]

PARALLEL_REQUESTS = 4
IDLE_S = 5.0
START_TIMEOUT_S = 300.0
PROBE_TIMEOUT_S = 5.0
LIBRARY = Path(__file__).parents[3]


@asynccontextmanager
async def local_endpoint(
    model: str, n_parallel: int = PARALLEL_REQUESTS, idle_s: float = IDLE_S
) -> AsyncIterator[Endpoint]:
    """The machine's server for `local/<name or path>`, kept alive while the context is open.

    `idle_s` counts for the server this call starts: seconds without a user after which it ends.
    UserError: unknown model, extra not installed, weights out of reach, server that does not start.
    """
    require_engine()
    entry = resolve(model)
    weights = await ensure_entry(entry)
    folder = server_folder(entry, n_parallel)
    folder.make()
    async with file_lock(folder.starting_lock):
        user = folder.register()
        try:
            endpoint = await _find_or_start(folder, _command(folder, entry, weights, n_parallel, idle_s))
        except BaseException:
            user.leave()
            raise
    try:
        yield endpoint
    finally:
        user.leave()


def _command(folder: ServerFolder, entry: Entry, weights: Path, n_parallel: int, idle_s: float) -> list[str]:
    module = [sys.executable, "-m", "trajectile.model.local.serve", str(folder.path), str(weights)]
    numbers = ["--n_ctx", str(entry.n_ctx), "--n_parallel", str(n_parallel), "--idle", str(idle_s)]
    return [*module, "--model", f"{PREFIX}{entry.name}", *numbers]


async def _find_or_start(folder: ServerFolder, command: list[str]) -> Endpoint:
    deadline = time.monotonic() + START_TIMEOUT_S
    started = False
    while time.monotonic() < deadline:
        free = try_lock(folder.server_lock)
        if free is not None and started:
            os.close(free)
            raise UserError(f"the local model server ended at its start; {folder.log} says:\n{folder.log_tail()}")
        if free is not None:
            _start(folder, command, free)
            started = True
        endpoint = folder.endpoint()
        if endpoint is not None and await asyncio.to_thread(_answers, endpoint):
            return endpoint
        await asyncio.sleep(POLL_S)
    raise UserError(f"the local model server does not answer; {folder.log} says:\n{folder.log_tail()}")


def _start(folder: ServerFolder, command: list[str], server_lock: int) -> None:
    """Start the server in a session of its own; it inherits the lock, so no moment is without an owner."""
    folder.state.unlink(missing_ok=True)
    try:
        with folder.log.open("w") as log:
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[server_lock],
                cwd=folder.path,
                env=_environment(),
            )
    finally:
        os.close(server_lock)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    search = [str(LIBRARY), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "OMP_WAIT_POLICY": "passive", "PYTHONPATH": os.pathsep.join(search)}


def _answers(endpoint: Endpoint) -> bool:
    request = urllib.request.Request(
        f"{endpoint.base_url}/models", headers={"Authorization": f"Bearer {endpoint.api_key}"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback never goes by a proxy
    try:
        with opener.open(request, timeout=PROBE_TIMEOUT_S) as response:
            return bool(response.status == 200)
    except OSError:
        return False
