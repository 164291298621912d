"""A web site, or a service that is asked over HTTP, which answers with exactly the bytes a test wants."""

import asyncio
import threading
from collections.abc import Callable
from typing import NamedTuple, Self


class Asked(NamedTuple):
    """A request; header names in small letters."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Drip(NamedTuple):
    """An answer that sends `chunk` every `seconds` and never ends."""

    head: bytes
    chunk: bytes
    seconds: float


Answer = bytes | Drip | None


def answer(
    body: str | bytes = b"", kind: str = "text/html; charset=utf-8", *, status: str = "200 OK", **headers: str
) -> bytes:
    """The bytes of an HTTP answer; `Content_Encoding="gzip"` becomes a header."""
    content = body.encode() if isinstance(body, str) else body
    lines = {"Content-Type": kind, "Content-Length": str(len(content)), "Connection": "close"}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + content


def redirect(target: str, status: str = "302 Found") -> bytes:
    return answer(status=status, Location=target)


class Site:
    """Serves `answers` by path, query left aside, from a thread of its own; None never answers, a list is answered in
    turn, its last item again and again, a function is asked. `asked` holds all requests."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self.host, self.port = host, port
        self.answers: dict[str, Answer | list[Answer] | Callable[[Asked], Answer]] = {}
        self.asked: list[Asked] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def url(self, path: str = "/") -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{path}"

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._serve, self.host, self.port)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _end(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._respond(await _request(reader), writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _respond(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        self.asked.append(asked)
        chosen = self._chosen(asked)
        if chosen is None:
            await asyncio.sleep(3600)
        elif isinstance(chosen, Drip):
            writer.write(chosen.head)
            while True:
                writer.write(chosen.chunk)
                await writer.drain()
                await asyncio.sleep(chosen.seconds)
        else:
            writer.write(chosen)
            await writer.drain()

    def _chosen(self, asked: Asked) -> Answer:
        there = self.answers.get(asked.path.partition("?")[0], answer("nothing here", status="404 Not Found"))
        if isinstance(there, list):
            return there.pop(0) if len(there) > 1 else there[0]
        return there(asked) if callable(there) else there


async def _request(reader: asyncio.StreamReader) -> Asked:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    method, path, _ = first.split(" ", 2)
    return Asked(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))
