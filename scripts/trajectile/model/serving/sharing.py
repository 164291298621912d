"""A server that processes share: the first user starts it, others find it, the last one's end stops it."""

import asyncio
import logging
import os
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from trajectile.errors import UserError
from trajectile.model.serving.folder import Endpoint, ServerFolder, sweep
from trajectile.model.serving.locks import POLL_S, try_lock
from trajectile.model.serving.logs import begin_log, log_tail
from trajectile.model.serving.probe import problem
from trajectile.model.serving.users import User

LIBRARY = Path(__file__).parents[3]
SLACK_S = 30.0  # for the server's own process, which keeps the time, to say how the start failed
TOLD_EVERY_S = 30.0
WATCH_S = 1.0
log = logging.getLogger(__name__)


class ServerDied(ConnectionError):
    """The server that this process was using is gone."""


@dataclass(frozen=True)
class Server:
    """What to start where nobody has: `command` is a program that takes over the lock and publishes its endpoint."""

    name: str
    folder: ServerFolder
    command: Sequence[str]
    log: Path
    timeout_s: float
    environment: Mapping[str, str]


@asynccontextmanager
async def shared_server(server: Server) -> AsyncIterator[Endpoint]:
    """Find the server or start it, and keep it alive while the context is open.

    UserError: it does not start, for this process or for one that was waited for. ServerDied: it ended meanwhile.
    """
    folder, began = server.folder, time.time()
    user = User(folder.users)
    try:
        async with _told(server.name), folder.starting(user):
            if failure := folder.failed_since(began):
                raise UserError(failure)
            endpoint = await _find_or_start(server)
        async with _while_alive(server, endpoint):
            yield endpoint
    finally:
        user.leave()
        folder.remove()


@asynccontextmanager
async def _told(name: str) -> AsyncIterator[None]:
    """Say now and then how long a server has been waited for, whoever starts it."""

    async def tell() -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(TOLD_EVERY_S)
            log.info("waiting for %s for %.0f s", name, time.monotonic() - began)

    telling = asyncio.create_task(tell())
    try:
        yield
    finally:
        telling.cancel()


async def _find_or_start(server: Server) -> Endpoint:
    folder, deadline, started = server.folder, time.monotonic() + server.timeout_s + SLACK_S, False
    while time.monotonic() < deadline:
        free = try_lock(folder.server_lock)
        if free is not None and started:
            os.close(free)
            raise _failed(server, "ended at its start")
        if free is not None:
            _start(server, free)
            started = True
        endpoint = folder.endpoint()
        if endpoint is not None and not await asyncio.to_thread(problem, endpoint):
            return endpoint
        await asyncio.sleep(POLL_S)
    raise _failed(server, "does not answer")


def _failed(server: Server, default: str) -> UserError:
    """Leave word for those who wait for this start; they need not try what has just failed."""
    message = _words(server, default)
    server.folder.failure.write_text(message)
    return UserError(message)


def _words(server: Server, default: str) -> str:
    ending = server.folder.ending
    how = ending.read_text() if ending.exists() else default
    return f"{server.name} {how}; {server.log} ends with:\n{log_tail(server.log)}"


def _start(server: Server, server_lock: int) -> None:
    """Start the server in a session of its own; it inherits the lock, so no moment is without an owner."""
    server.folder.forget()
    sweep(server.folder)
    begin_log(server.log, f"start of {server.name}")
    try:
        with server.log.open("ab") as log:
            subprocess.Popen(
                server.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[server_lock],
                env=_with_library(server.environment),
            )
    finally:
        os.close(server_lock)


def _with_library(environment: Mapping[str, str]) -> dict[str, str]:
    search = [str(LIBRARY), *filter(None, [environment.get("PYTHONPATH")])]
    return {**environment, "PYTHONPATH": os.pathsep.join(search)}


@asynccontextmanager
async def _while_alive(server: Server, endpoint: Endpoint) -> AsyncIterator[None]:
    """Cancel what is done inside when the server dies, and raise ServerDied in its place."""
    task, died = asyncio.current_task(), False
    assert task is not None

    async def watch() -> None:
        nonlocal died
        while server.folder.serves(endpoint):  # noqa: ASYNC110 (the kernel has no event for this)
            await asyncio.sleep(WATCH_S)
        died = True
        task.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if died and not task.uncancel():
            raise ServerDied(_words(server, "ended")) from None
        raise
    finally:
        watcher.cancel()
