"""The settings of a run, typed, from one schema."""

import hashlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from trajectile.errors import UserError
from trajectile.schema import checked, schema


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting, as config/config.schema.yaml describes it."""

    dataset_file: str
    run_name: str
    batch_size: int
    max_samples: int | None
    on_bad_row: str
    distribution: str
    missing_toolsets: str
    model: str
    base_url: str
    max_turns: int
    concurrency: int
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    seed: int
    ephemeral_system_prompt: str
    prefill_messages_file: str
    sandbox: str
    local_isolation: str
    command_timeout: float
    output_limit: int
    prompt_timeout: float
    max_tokens_per_prompt: int | None
    request_timeout: float
    max_retries: int
    max_attempts: int | None
    max_failed_fraction: float
    max_consecutive_failures: int
    settings_change: str
    require_reasoning: str
    superseded_rows: str
    preflight: bool
    log_prefix_chars: int
    verbose: bool

    @property
    def folder(self) -> Path:
        return Path("data") / self.run_name

    @property
    def dataset_path(self) -> Path:
        return Path(self.dataset_file)


def load_settings(config: dict[str, Any]) -> Settings:
    """Check a configuration, fill in the defaults and type it; a UserError names each wrong key and what it takes."""
    values = checked(config)
    return msgspec.convert(values | _as_text(values), Settings, strict=False)


def _as_text(values: dict[str, Any]) -> dict[str, str]:
    """Give run_name and require_reasoning, which YAML may read as a number or a boolean, as text."""
    return {
        "run_name": str(values["run_name"]),
        "require_reasoning": str(values["require_reasoning"]).lower(),
    }


def frozen_settings(settings: Settings) -> dict[str, Any]:
    """Return what shapes a trajectory and is fixed for a run; prompt texts and files as their SHA-256."""
    names = [name for name, entry in schema()["properties"].items() if entry.get("x-frozen")]
    frozen = {name: getattr(settings, name) for name in names}
    frozen["base_url_host"] = "" if settings.model.startswith("local/") else urlsplit(settings.base_url).hostname or ""
    frozen["ephemeral_system_prompt"] = _digest(settings.ephemeral_system_prompt.encode())
    prefill = settings.prefill_messages_file
    frozen["prefill_messages_file"] = _digest(_content(prefill) if prefill else b"")
    return frozen


def _content(prefill: str) -> bytes:
    try:
        return Path(prefill).read_bytes()
    except OSError as error:
        raise UserError(f"prefill_messages_file: {prefill} cannot be read: {error.strerror}") from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() if content else ""


def settings_digest(frozen: dict[str, Any]) -> str:
    """Return a short name for a set of frozen settings, kept in each row."""
    return hashlib.sha256(msgspec.json.encode(frozen, order="sorted")).hexdigest()[:16]
