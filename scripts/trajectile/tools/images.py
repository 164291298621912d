"""What an image is, by its first bytes: names and servers' words are not to be relied on."""

import base64

MEDIA_TYPES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


def media_type(data: bytes) -> str:
    """The media type of a PNG, JPEG, GIF or WebP image; ValueError for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    for start, kind in MEDIA_TYPES.items():
        if data.startswith(start):
            return kind
    raise ValueError("not a PNG, JPEG, GIF or WebP image")


def from_data_url(url: str) -> bytes:
    """The bytes of a base64 data URL; ValueError for anything else."""
    head, comma, text = url.partition(",")
    if not comma or not head.lower().endswith(";base64"):
        raise ValueError("not a data URL in base64")
    return from_base64(text)


def from_base64(text: str) -> bytes:
    """The bytes that base64 stands for, line breaks aside; ValueError for anything else."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except ValueError as error:
        raise ValueError(f"not base64: {error}") from None


def data_url(image: bytes, limit_bytes: int) -> str:
    """An image as it stands in a message; ValueError for what is no image, or a larger one."""
    kind = media_type(image)
    if len(image) > limit_bytes:
        raise ValueError(f"the image has {len(image):,} bytes, more than the {limit_bytes:,} that can be looked at")
    return f"data:{kind};base64,{base64.b64encode(image).decode()}"
