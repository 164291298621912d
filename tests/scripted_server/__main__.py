"""Start the server by hand: python -m scripted_server --port 8000 --rules rules.yaml --latency 0.5."""

import asyncio
import signal
import sys
from dataclasses import replace
from pathlib import Path

import click
from aiohttp import web

from .answers import STYLES
from .app import Server
from .counters import Counters
from .script import Script, read_script

SHUTDOWN_S = 0.1
BACKLOG = 2048


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=0, help="0 takes a free one; the port is printed.")
@click.option("--rules", type=click.Path(exists=True, path_type=Path), help="Script in YAML or JSON.")
@click.option("--latency", type=float, help="Seconds before each answer.")
@click.option("--jitter", type=float, help="Share by which the latency varies.")
@click.option("--steps", type=int, help="Tool calls of the default reply before its answer.")
@click.option("--seed", type=int)
@click.option("--model", "models", multiple=True, help="Names of the models there are; any name is taken without it.")
@click.option("--api-key", help="The only key that is taken; any is taken without it.")
@click.option("--reasoning-style", type=click.Choice(STYLES))
@click.option("--log", type=click.Path(path_type=Path), help="File to append a JSON line to for each event.")
def main(host: str, port: int, rules: Path | None, log: Path | None, **options: object) -> None:
    """Serve a scripted model until a signal comes."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if "models" in given:
        given["models"] = list(given["models"])  # type: ignore[call-overload]
    script = read_script(rules) if rules else Script()
    server = Server(replace(script, **given), Counters(log))  # type: ignore[arg-type]
    asyncio.run(serve(server, host, port))


async def serve(server: Server, host: str, port: int) -> None:
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    site = web.TCPSite(runner, host, port, backlog=BACKLOG)
    await site.start()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    sys.stdout.write(f"{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await stop.wait()
    await runner.cleanup()


main()
