"""Images and sounds: what the server says of those it is shown, and those it makes."""

import base64
import struct
import zlib
from typing import Any

from .script import Reply, short_digest

SIDE = 8


def describe_images(messages: list[dict[str, Any]]) -> Reply | None:
    """Return what is to be said about the last message's images: type, bytes and digest of each; None without any."""
    content = messages[-1].get("content")
    parts = content if isinstance(content, list) else []
    urls = [part["image_url"]["url"] for part in parts if part.get("type") == "image_url"]
    return Reply(text="; ".join(map(describe, urls)), reasoning="I look.") if urls else None


def describe(data_url: str) -> str:
    kind, _, text = data_url.removeprefix("data:").partition(";base64,")
    image = base64.b64decode(text, validate=True)
    return f"{kind}, {len(image)} bytes, {short_digest(image.hex())}"


def png(seed: str) -> bytes:
    """Return a small PNG in a colour that depends on `seed`."""
    pixel = bytes.fromhex(short_digest(seed)[:6])
    rows = b"".join(b"\0" + pixel * SIDE for _ in range(SIDE))
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def images_body(prompt: str, usage: dict[str, Any], url: str) -> dict[str, Any]:
    """Return an answer of the images API: at `url` where that is given, else in base64."""
    where = {"url": url} if url else {"b64_json": base64.b64encode(png(prompt)).decode()}
    return {"created": 0, "data": [where], "usage": {"input_tokens": 10, "output_tokens": 20} | usage}


def sound(text: str, kind: str, voice: str) -> bytes:
    """Return bytes that begin as such a file does and name what was asked for."""
    start = {"wav": b"RIFF\0\0\0\0WAVE", "mp3": b"ID3\x04", "flac": b"fLaC"}.get(kind, b"\xff\xf1")
    return start + f" {voice}: {text}".encode()
