"""Content-Encoding undone in bounded memory: a few kilobytes may stand for gigabytes."""

import zlib

GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


class Unpacking:
    """Unpacks a body chunk by chunk; ValueError for an encoding other than gzip and deflate, or a damaged body."""

    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise ValueError(f"the body is packed as {encoding[:100]}, which was not asked for")
        self._packed = name not in ("", "identity")
        self._bare_possible = name == "deflate"
        self._unpacker = zlib.decompressobj(GZIP_OR_ZLIB)

    def feed(self, chunk: bytes, room: int) -> bytes:
        """What `chunk` adds, at most `room` bytes of it; what is over is dropped."""
        if not self._packed:
            return chunk[:room]
        try:
            return self._unpacker.decompress(chunk, max(room, 1))
        except zlib.error as error:
            if not self._bare_possible:
                raise ValueError(f"the body cannot be unpacked: {error}") from None
            # some servers leave the zlib header away
            self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
            self._bare_possible = False
            return self.feed(chunk, room)
