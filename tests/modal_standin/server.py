"""The stand-in's life: a thread of its own, a port on loopback."""

import asyncio
import socket
import threading
from pathlib import Path

from grpclib.server import Server

from modal_standin.control import Control
from modal_standin.router import Router


class Standin:
    """A running stand-in: where it listens, and its sandboxes."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.control = Control(folder)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = self.control.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self.loop).result(30)

    async def _serve(self) -> None:
        self._server = Server([self.control, Router(self.control)])
        await self._server.start(sock=self._socket)

    def living(self, run: str = "") -> "list[str]":
        """The sandboxes that have not ended, of a run where one is named."""
        machines = self.control.machines.items()
        return [name for name, it in machines if it.result is None and run in ("", it.tags.get("run"))]

    def end(self, sandbox_id: str, code: int) -> None:
        machine = self.control.machines[sandbox_id]
        asyncio.run_coroutine_threadsafe(machine.end(code), self.loop).result(30)

    async def _stop(self) -> None:
        for machine in self.control.machines.values():
            await machine.end(137)
        self._server.close()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self.loop).result(30)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(30)
