"""The schema of the settings: reading a configuration by it, and saying in words what it takes."""

import math
import re
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from trajectile.errors import UserError

SCHEMA_FILE = Path(__file__).parents[3] / "config" / "config.schema.yaml"
SECRETS = frozenset({"api_key", "vision_api_key", "image_api_key", "tts_api_key"})
LOGIN = re.compile(r"(?<=//)[^/?#\s]*@")  # the user and password of an address
LARGEST_INTEGER = 2**63 - 1
PATTERNS = {
    "^https?://": "beginning with http:// or https://",
    "^(https?://.*)?$": "beginning with http:// or https://, or empty",
    "^((messages|hermes|llamafactory|parquet|atif)(,(?!$)|$))*$": "of messages, hermes, llamafactory, parquet, atif",
    "^[1-9][0-9]*[kmgKMG]$": "of digits and k, m or g, such as 512m",
    "^[A-Za-z0-9][A-Za-z0-9_.-]*$": "of letters, digits, '.', '_' and '-'",
    "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$": "of up to 100 letters, digits, '.', '_' and '-', the first a letter or digit",
}


@cache
def schema() -> dict[str, Any]:
    """Return the JSON schema of the settings."""
    loaded: dict[str, Any] = yaml.safe_load(SCHEMA_FILE.read_text(encoding="utf-8"))
    return loaded


def checked(config: dict[str, Any]) -> dict[str, Any]:
    """Return all settings, those that a configuration leaves out by their default; UserError lists what is wrong."""
    if secrets := SECRETS & config.keys():
        raise UserError(
            f"{', '.join(sorted(secrets))} does not belong in the configuration: it would be written into logs. "
            f"Put the key into the environment as {', '.join(_variable(name) for name in sorted(secrets))}."
        )
    for name in config.keys() & schema()["properties"]:
        if name.endswith("base_url") and LOGIN.search(str(config[name])):
            raise UserError(
                f"{name}: a user name or password in it would be written into run.json and logs; leave them out. A "
                f"key goes into the environment as {_variable(name.replace('base_url', 'api_key'))}; for a server "
                "that wants a password, run a proxy that adds it."
            )
    entries = schema()["properties"]
    read = {name: read_value(entries.get(name, {}), value) for name, value in config.items()}
    problems = [_explain(error) for error in jsonschema.Draft202012Validator(schema()).iter_errors(read)]
    problems += [_refuse(name, read[name]) for name in read.keys() & entries if _is_misread(entries[name], read[name])]
    problems += [_not_utf8(name, value) for name, value in read.items() if _holds_odd_bytes(value)]
    if problems:
        raise UserError("\n".join(sorted(dict.fromkeys(problems))))
    return {name: read.get(name, entry["default"]) for name, entry in entries.items()}


def _variable(secret: str) -> str:
    return f"TRAJECTILE_{secret.upper()}"


def read_value(entry: dict[str, Any], value: Any) -> Any:
    """Return what a value stands for where it came as text: from the command line, `--config` or quotes in YAML.

    A list of texts, as YAML may hold it, stands for the texts separated by commas.
    """
    if isinstance(value, list) and kinds_of(entry) == ["string"] and all(isinstance(item, str) for item in value):
        return ",".join(value)
    if not isinstance(value, str):
        return value
    kinds = kinds_of(entry)
    if "enum" in entry:
        return value.lower() if value.lower() in entry["enum"] else value
    if "null" in kinds and value.lower() in ("", "null", "none"):
        return None
    if "boolean" in kinds:
        return {"true": True, "false": False}.get(value.lower(), value)
    return value if "string" in kinds else _number(value)


def _number(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def kinds_of(entry: dict[str, Any]) -> list[str]:
    """Return the JSON types that a setting takes, none where it takes listed words."""
    kinds: str | list[str] = entry.get("type", [])
    return [kinds] if isinstance(kinds, str) else kinds


def _is_misread(entry: dict[str, Any], value: Any) -> bool:
    """Tell whether a number that the schema lets through is of no use: a name such as 1.10, NaN, beyond 64 bits."""
    if isinstance(value, float) and "string" in kinds_of(entry):
        return True
    return isinstance(value, int | float) and (not math.isfinite(value) or abs(value) > LARGEST_INTEGER)


def _holds_odd_bytes(value: Any) -> bool:
    """Tell whether a text came from bytes that are not UTF-8, which Python keeps as lone surrogates."""
    return isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value)


def _not_utf8(name: str, value: str) -> str:
    return f"{name}: {value!r} is not UTF-8. Give it in UTF-8; a file of such a name has to be renamed first."


def _explain(error: jsonschema.ValidationError) -> str:
    if error.validator == "additionalProperties":
        instance: Any = error.instance
        return "\n".join(_unknown(name) for name in sorted(map(str, instance.keys() - schema()["properties"].keys())))
    return _refuse(str(error.path[0]), error.instance)


def _unknown(name: str) -> str:
    known = schema()["properties"]
    close = get_close_matches(name, known, n=1)
    return f"{name}: there is no such setting; " + (
        f"did you mean {close[0]}?" if close else f"the settings are {', '.join(known)}"
    )


def _refuse(name: str, value: Any) -> str:
    beyond = " of 64 bits" if isinstance(value, int) and abs(value) > LARGEST_INTEGER else ""
    shown = LOGIN.sub("…@", repr(value))
    return f"{name}: {shown} is not accepted; expected {accepted(schema()['properties'][name])}{beyond}"


def accepted(entry: dict[str, Any]) -> str:
    """Say which values a setting takes, in words."""
    if "enum" in entry:
        return " or ".join(dict.fromkeys(str(value).lower() for value in entry["enum"]))
    names = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    kinds = [names.get(kind, kind) for kind in kinds_of(entry) if kind != "null"]
    if "string" in kinds_of(entry):
        kinds = ["text"]  # what is a number to YAML may be a name
    bounds = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}
    limits = [" and ".join(f"{words} {entry[key]:,}" for key, words in bounds.items() if key in entry)]
    limits += [PATTERNS.get(entry["pattern"], f"matching {entry['pattern']}")] if "pattern" in entry else []
    words = " ".join(["non-empty text" if entry.get("minLength") else " or ".join(kinds), *filter(None, limits)])
    return f"{words}, or null" if "null" in kinds_of(entry) else words
