"""The settings of a run, typed, from one schema."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import msgspec
import yaml

from trajectile.errors import UserError

SCHEMA_FILE = Path(__file__).parents[2] / "config" / "config.schema.yaml"
SECRETS = frozenset({"api_key"})


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


@cache
def schema() -> dict[str, Any]:
    """Return the JSON schema of the settings."""
    loaded: dict[str, Any] = yaml.safe_load(SCHEMA_FILE.read_text(encoding="utf-8"))
    return loaded


def load_settings(config: dict[str, Any]) -> Settings:
    """Check a configuration, fill in the defaults and type it; a UserError names each wrong key and what it takes."""
    if secrets := SECRETS & config.keys():
        raise UserError(
            f"{', '.join(secrets)} does not belong in the configuration: it would be written into logs. "
            "Put the key into the environment as TRAJECTILE_API_KEY."
        )
    errors = sorted(jsonschema.Draft202012Validator(schema()).iter_errors(config), key=lambda e: list(e.path))
    if errors:
        raise UserError("\n".join(_explain(error) for error in errors))
    filled = {name: config.get(name, entry["default"]) for name, entry in schema()["properties"].items()}
    return msgspec.convert(_spelled(filled), Settings)


def _spelled(values: dict[str, Any]) -> dict[str, Any]:
    """Give run_name and require_reasoning, which YAML may read as a number or a boolean, as text."""
    text = {
        "run_name": str(values["run_name"]),
        "require_reasoning": str(values["require_reasoning"]).lower(),
    }
    return values | text


def _explain(error: jsonschema.ValidationError) -> str:
    if error.validator == "additionalProperties":
        instance: Any = error.instance
        unknown = sorted(instance.keys() - schema()["properties"].keys())
        return f"unknown setting: {', '.join(unknown)}. The settings are: {', '.join(schema()['properties'])}"
    name = str(error.path[0])
    return f"{name}: {error.instance!r} is not accepted; expected {accepted(schema()['properties'][name])}"


def accepted(entry: dict[str, Any]) -> str:
    """Say which values a setting takes, in words."""
    if "enum" in entry:
        return " or ".join(dict.fromkeys(str(value).lower() for value in entry["enum"]))
    kinds = [entry["type"]] if isinstance(entry["type"], str) else entry["type"]
    bounds = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "pattern": "matching",
    }
    limits = [f"{words} {entry[key]}" for key, words in bounds.items() if key in entry]
    return " ".join([" or ".join(kinds), *limits])


def frozen_settings(settings: Settings) -> dict[str, Any]:
    """Return what shapes a trajectory and is fixed for a run; prompt texts and files as their SHA-256."""
    names = [name for name, entry in schema()["properties"].items() if entry.get("x-frozen")]
    frozen = {name: getattr(settings, name) for name in names}
    frozen["base_url_host"] = "" if settings.model.startswith("local/") else urlsplit(settings.base_url).hostname or ""
    frozen["ephemeral_system_prompt"] = _digest(settings.ephemeral_system_prompt.encode())
    prefill = settings.prefill_messages_file
    frozen["prefill_messages_file"] = _digest(Path(prefill).read_bytes() if prefill else b"")
    return frozen


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() if content else ""


def settings_digest(frozen: dict[str, Any]) -> str:
    """Return a short name for a set of frozen settings, kept in each row."""
    return hashlib.sha256(msgspec.json.encode(frozen, order="sorted")).hexdigest()[:16]
