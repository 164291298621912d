"""The settings that are fixed for a run, since they shape its trajectories."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from trajectile.configuration.schema import schema
from trajectile.configuration.settings import Settings
from trajectile.errors import UserError

LOOPBACK = "127.0.0.1"


def frozen_settings(settings: Settings) -> dict[str, Any]:
    """Return what shapes a trajectory and is fixed for a run; prompt texts and files as their SHA-256."""
    names = [name for name, entry in schema()["properties"].items() if entry.get("x-frozen")]
    frozen = {name: getattr(settings, name) for name in names}
    frozen["base_url_host"] = _host(settings)
    frozen["ephemeral_system_prompt"] = _digest(settings.ephemeral_system_prompt.encode())
    prefill = settings.prefill_messages_file
    frozen["prefill_messages_file"] = _digest(_content("prefill_messages_file", prefill) if prefill else b"")
    frozen["tool_files"] = _digest(b"".join(_tools_as_bytes(settings)))
    return frozen


def _tools_as_bytes(settings: Settings) -> Iterator[bytes]:
    for name in settings.tool_sources:
        yield _content("tool_files", name) if name.endswith(".py") else f"{name}\n".encode()


def _host(settings: Settings) -> str:
    """Return where the model is; a server that the run starts is on the machine of the shard."""
    if settings.model.startswith("local/"):
        return ""
    return LOOPBACK if settings.serve_command else urlsplit(settings.base_url).hostname or ""


def _content(setting: str, file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise UserError(f"{setting}: {file} cannot be read: {error.strerror}") from None


def prompt_again(prompt: str) -> str:
    """Return how a command that goes on with a run ends: nothing keeps a copy of its ephemeral system prompt."""
    return " (and the same --ephemeral_system_prompt)" if prompt else ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() if content else ""


def settings_digest(frozen: dict[str, Any]) -> str:
    """Return a short name for a set of frozen settings, kept in each row."""
    return hashlib.sha256(msgspec.json.encode(frozen, order="sorted")).hexdigest()[:16]
