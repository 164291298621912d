"""Our end of the line to a script in a sandbox: what it prints, and the calls that it makes."""

import asyncio
from typing import Any

import orjson

from trajectile.sandbox.base import OutputBuffer
from trajectile.sandbox.output import HeadTail

REQUEST_LIMIT_BYTES = 16 << 20


class Channel(OutputBuffer):
    """Takes a script's standard output apart: `requests` gets what runner.py frames, `value` is all the rest, bounded.

    `started` comes true with the first frame. What is framed by the token and is no request is thrown away.
    """

    def __init__(self, token: str, limit_bytes: int) -> None:
        self.requests: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.started = False
        self._opening = b"\0" + token.encode()
        self._printed = HeadTail(limit_bytes)
        self._pending = bytearray()
        self._parts = bytearray()

    def feed(self, chunk: bytes) -> None:
        self._pending += chunk
        while self._take():
            pass

    def _take(self) -> bool:
        """Take one frame, or what is printed before it; whether there may be more."""
        at = self._pending.find(self._opening)
        if at < 0:
            self._print(len(self._pending) - self._kept_back())
            return False
        self._print(at)
        end = self._pending.find(b"\n")
        if end < 0:
            return False
        self._frame(bytes(self._pending[len(self._opening) : end]))
        del self._pending[: end + 1]
        return True

    def _kept_back(self) -> int:
        """Bytes at the end that may be the beginning of a frame."""
        at = self._pending.rfind(b"\0")
        return len(self._pending) - at if at >= 0 and self._opening.startswith(self._pending[at:]) else 0

    def _print(self, length: int) -> None:
        self._printed.feed(bytes(self._pending[:length]))
        del self._pending[:length]

    def _frame(self, frame: bytes) -> None:
        self.started = True
        if len(self._parts) + len(frame) > REQUEST_LIMIT_BYTES:
            frame = b"."
        self._parts += frame[1:]
        if frame[:1] == b"+":
            return
        try:
            request = orjson.loads(self._parts)
        except orjson.JSONDecodeError:
            request = {"tool": "", "arguments": {}}
        self._parts.clear()
        if isinstance(request, dict) and "tool" in request:
            self.requests.put_nowait(request)

    def value(self) -> bytes:
        return self._printed.value()
