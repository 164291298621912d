"""Messages over a stream of lines, as stdio servers speak: what is read of them and what they print besides."""

from typing import Any

from trajectile.sandbox.base import OutputBuffer
from trajectile.sandbox.output import HeadTail, to_text

SAID_BYTES = 4000
MESSAGE_LIMIT_BYTES = 32 << 20
MESSAGES_WAITING = 1000


class Said(OutputBuffer):
    """A part of what a server printed beside the protocol, for when it does not work."""

    def __init__(self) -> None:
        self._kept = HeadTail(SAID_BYTES)

    def __str__(self) -> str:
        return to_text(self._kept.value()).strip()

    def feed(self, chunk: bytes) -> None:
        self._kept.feed(chunk)

    def value(self) -> bytes:
        return self._kept.value()


class Lines(OutputBuffer):
    """Makes messages of what a server prints, a line each, for `stream`; a line that is none goes to `said`.

    The stream ends where a line is longer than any message, or messages come that nobody waits for; what comes after
    that is thrown away.
    """

    def __init__(self, stream: Any, said: Said) -> None:
        self._stream, self._said = stream, said
        self._pending = bytearray()
        self._closed = False

    def feed(self, chunk: bytes) -> None:
        if self._closed:
            return
        self._pending += chunk
        if b"\n" in chunk:
            *lines, rest = bytes(self._pending).split(b"\n")
            self._pending = bytearray(rest)
            for line in lines:
                self._take(line)
        if len(self._pending) > MESSAGE_LIMIT_BYTES:
            self._close()

    def _close(self) -> None:
        self._closed = True
        self._pending.clear()
        self._stream.close()

    def _take(self, line: bytes) -> None:
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp.types import jsonrpc_message_adapter

        try:
            message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            self._said.feed(line + b"\n")
            return
        try:
            self._stream.send_nowait(message)
        except anyio.WouldBlock:
            self._close()
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass  # the session has ended

    def value(self) -> bytes:
        return bytes(self._pending)


def to_line(message: Any) -> bytes:
    """A message of the SDK as it goes to a server."""
    text: str = message.message.model_dump_json(by_alias=True, exclude_unset=True)
    return f"{text}\n".encode()
