"""The server process: engine and front, until no user is left. Started by manager.py, not by hand."""

import asyncio
import logging
import os
import secrets
import signal
import sys
from pathlib import Path

import click
from aiohttp import web

from trajectile.model.local.engine import start_engine
from trajectile.model.local.front import Front
from trajectile.model.serving.attendance import SWEEP_S, Attendance
from trajectile.model.serving.folder import Endpoint, ServerFolder

LOOPBACK = "127.0.0.1"

log = logging.getLogger(__name__)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("weights", type=click.Path(path_type=Path))
@click.option("--model", required=True, help="Name under which the model is served.")
@click.option("--n_ctx", type=int, required=True, help="Most tokens of one request.")
@click.option("--n_parallel", type=int, required=True, help="Requests answered at once.")
@click.option("--idle", type=float, required=True, help="Seconds without a user after which the server ends.")
def main(folder: Path, weights: Path, model: str, n_ctx: int, n_parallel: int, idle: float) -> None:
    """Serve WEIGHTS for the users registered in FOLDER."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        engine = start_engine(weights, n_ctx, n_parallel)
    except RuntimeError as error:
        sys.exit(f"the engine cannot load {weights}: {error}")
    front = Front(model, secrets.token_urlsafe(24), engine.address, engine.key)
    status = 1
    try:
        asyncio.run(serve(front, ServerFolder(folder), idle))
        status = 0
    except Exception:
        log.exception("the server failed")
    finally:
        ServerFolder(folder).remove(by_server=True)
        os._exit(status)  # nothing is left to save, and the engine's own end waits for replies nobody reads


async def serve(front: Front, folder: ServerFolder, idle_s: float) -> None:
    """Answer requests until SIGTERM, SIGINT, or `idle_s` seconds without a user."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    runner = web.AppRunner(front.application(), handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, LOOPBACK, 0).start()
    port = runner.addresses[0][1]
    folder.publish(Endpoint(f"http://{LOOPBACK}:{port}/v1", front.api_key, os.getpid()))
    log.info("serving %s on port %d", front.model, port)
    await _until_deserted(folder, idle_s, stop)
    await runner.cleanup()


async def _until_deserted(folder: ServerFolder, idle_s: float, stop: asyncio.Event) -> None:
    attendance = Attendance(folder, idle_s)
    while not stop.is_set():
        if attendance.is_over():
            log.info("no user left")
            return
        await _sleep(stop, SWEEP_S)
    log.info("stopped by a signal")


async def _sleep(stop: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return


if __name__ == "__main__":
    main()
