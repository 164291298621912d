"""The shared server of a local model on this machine."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trajectile.model.local.catalogue import PREFIX, Entry, resolve
from trajectile.model.local.servers import server_folder
from trajectile.model.local.weights import ensure_entry, ensure_weights, require_engine
from trajectile.model.serving.folder import Endpoint, ServerFolder
from trajectile.model.serving.sharing import Server, shared_server

__all__ = ["Endpoint", "ensure_weights", "local_endpoint"]

NAME = "the local model server"
PARALLEL_REQUESTS = 4
IDLE_S = 5.0
START_TIMEOUT_S = 300.0


@asynccontextmanager
async def local_endpoint(
    model: str, n_parallel: int = PARALLEL_REQUESTS, idle_s: float = IDLE_S
) -> AsyncIterator[Endpoint]:
    """The machine's server for `local/<name or path>`, kept alive while the context is open.

    `idle_s` counts for the server this call starts: seconds without a user after which it ends.
    UserError: unknown model, extra not installed, weights out of reach, server that does not start. ServerDied: it
    ended while the context was open.
    """
    require_engine()
    entry = resolve(model)
    weights = await ensure_entry(entry)
    folder = server_folder(entry, n_parallel)
    command = _command(folder, entry, weights, n_parallel, idle_s)
    server = Server(NAME, folder, command, folder.path / "server.log", START_TIMEOUT_S, _environment())
    async with shared_server(server) as endpoint:
        yield endpoint


def _command(folder: ServerFolder, entry: Entry, weights: Path, n_parallel: int, idle_s: float) -> list[str]:
    module = [sys.executable, "-m", "trajectile.model.local.serve", str(folder.path), str(weights)]
    numbers = ["--n_ctx", str(entry.n_ctx), "--n_parallel", str(n_parallel), "--idle", str(idle_s)]
    return [*module, "--model", f"{PREFIX}{entry.name}", *numbers]


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**kept, "OMP_WAIT_POLICY": "passive"}
