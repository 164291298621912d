"""A server of a local model on a port of its own: python -m trajectile.model.local.alone NAME --port 8080.

Its API key is that of the environment variable LLAMA_API_KEY, none where that is not set.
"""

import asyncio
import os
import signal
import sys

import click
from aiohttp import web

from trajectile.errors import UserError
from trajectile.model.local.catalogue import Entry, resolve
from trajectile.model.local.engine import Engine, start_engine
from trajectile.model.local.front import Front
from trajectile.model.local.manager import PARALLEL_REQUESTS
from trajectile.model.local.weights import ensure_weights, require_engine


@click.command()
@click.argument("name")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=int, default=8080, show_default=True)
@click.option("--parallel", default=PARALLEL_REQUESTS, show_default=True, help="Requests answered at once.")
def main(name: str, host: str, port: int, parallel: int) -> None:
    """Serve the local model NAME, of the catalogue or a path to a GGUF file, until a signal comes."""
    try:
        require_engine()
        entry = resolve(name)
        engine = start_engine(ensure_weights(name), entry.n_ctx, parallel)
        asyncio.run(_serve(entry, engine, host, port))
    except (UserError, OSError) as error:
        click.echo(f"Error: {error}", err=True)
        _end(2)
    _end(0)


def _end(status: int) -> None:
    """End at once: nothing is left to save, and the engine's own end waits for replies nobody reads."""
    sys.stdout.flush()
    os._exit(status)


async def _serve(entry: Entry, engine: Engine, host: str, port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    front = Front(entry.name, os.environ.get("LLAMA_API_KEY", ""), engine.address, engine.key)
    runner = web.AppRunner(front.application(), handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    click.echo(f"serving {entry.name} on http://{host}:{port}/v1")
    await stop.wait()
    await runner.cleanup()


if __name__ == "__main__":
    main()
