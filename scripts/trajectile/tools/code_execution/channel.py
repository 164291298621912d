"""Our end of the line to a script in a sandbox: what it prints, and the calls that it makes."""

import asyncio
from typing import Any

import orjson

from trajectile.sandbox.base import OutputBuffer
from trajectile.sandbox.output import HeadTail

REQUEST_LIMIT_BYTES = 16 << 20
TOO_LARGE = f"a call's arguments may have {REQUEST_LIMIT_BYTES >> 20} MB as JSON, these have more; pass less at once"
NO_JSON = "a call's arguments must be JSON: NaN, infinities and lone surrogates are none"


class Channel(OutputBuffer):
    """Takes a script's standard output apart: `requests` gets what runner.py frames, `value` is all the rest, bounded.

    `started` comes true with the first frame. A request that cannot be read holds `refused` alone, which says why.
    """

    def __init__(self, token: str, limit_bytes: int) -> None:
        self.requests: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.started = False
        self._opening = b"\0" + token.encode()
        self._printed = HeadTail(limit_bytes)
        self._pending = bytearray()
        self._parts = bytearray()
        self._too_large = False

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
        self._parts += frame[1:]
        if len(self._parts) > REQUEST_LIMIT_BYTES:
            self._too_large = True
            self._parts.clear()
        if frame[:1] == b"+":
            return
        request = {"refused": TOO_LARGE} if self._too_large else _read(self._parts)
        self._parts.clear()
        self._too_large = False
        if "tool" in request or "refused" in request:
            self.requests.put_nowait(request)

    def value(self) -> bytes:
        return self._printed.value()


def _read(text: bytearray) -> dict[str, Any]:
    try:
        request = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {"refused": NO_JSON}
    return request if isinstance(request, dict) else {}
