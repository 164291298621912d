"""What a command prints, kept within bounds and made into text."""

import re

from trajectile.sandbox.base import OutputBuffer

ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links and other strings
    r"|[ -/]*[0-~])"  # two-character sequences
)


class HeadTail(OutputBuffer):
    """Keeps the first and the last half of `limit_bytes`, and a note with the number of bytes cut between them."""

    def __init__(self, limit_bytes: int) -> None:
        self._head_limit = limit_bytes - limit_bytes // 2
        self._tail_limit = limit_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def feed(self, chunk: bytes) -> None:
        self._total += len(chunk)
        room = self._head_limit - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * self._tail_limit + (1 << 16):
            del self._tail[: len(self._tail) - self._tail_limit]

    def value(self) -> bytes:
        tail = self._tail[max(0, len(self._tail) - self._tail_limit) :]
        cut = self._total - len(self._head) - len(tail)
        note = f"\n[… {cut} bytes cut …]\n".encode() if cut else b""
        return bytes(self._head + note + tail)


def head_and_tail(text: str, limit_bytes: int) -> bytes:
    """The first and the last half of `limit_bytes` of a text, with a note on what is cut between them."""
    kept = HeadTail(limit_bytes)
    kept.feed(text.encode("utf-8", "replace"))
    return kept.value()


class Whole(OutputBuffer):
    """Keeps everything up to `limit_bytes`, then only counts: `overflow` says that something was lost."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._data = bytearray()
        self.overflow = False

    def feed(self, chunk: bytes) -> None:
        room = self._limit - len(self._data)
        self.overflow = self.overflow or len(chunk) > room
        self._data += chunk[:room]

    def value(self) -> bytes:
        return bytes(self._data)


def cut(text: str, limit_bytes: int) -> str:
    """`head_and_tail` of a text, as to_text makes it."""
    return to_text(head_and_tail(text, limit_bytes))


def to_text(data: bytes) -> str:
    """Bytes of any kind as text that is valid UTF-8: no terminal sequences, no NUL, no lone surrogates."""
    text = data.decode("utf-8", "replace")
    if "\x1b" in text:
        text = ANSI.sub("", text)
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
