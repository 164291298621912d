"""Row identities (key and ordinal) of files, remembered beside them so that unchanged files are not read again."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

import msgspec
import orjson

from trajectile.notes import Notes
from trajectile.run_folder.journal import TRAJECTORY, records
from trajectile.run_folder.paths import RunFolder, write_atomic

KEY_BYTES = 32
ID_BYTES = KEY_BYTES + 4
ONE_ID = Struct(f"{ID_BYTES}s")
Id = bytes
Stamp = dict[str, int]


def make_id(prompt_key: str, ordinal: int) -> Id:
    """Return the 36 bytes that tell one owed row from all others: its key and which of its equals it is."""
    return id_of(bytes.fromhex(prompt_key), ordinal)


def id_of(digest: bytes, ordinal: int) -> Id:
    """As make_id, from the key's bytes."""
    return digest + ordinal.to_bytes(4, "big")


class Ids(NamedTuple):
    """The row identities of a file in its order, the SHA-256 (hex) of what they were read from, and notes on it.

    `stamp` is that of the file before it was read; without one, the file is as it was written with these.
    """

    ids: list[Id]
    digest: str
    notes: Notes = Notes()
    stamp: Stamp | None = None


def remembered(folder: RunFolder, path: Path, **options: object) -> Ids | None:
    """Return the remembered identities of a file, None where it, or the options of reading it, changed since."""
    try:
        header, _, packed = folder.keys(path).read_bytes().partition(b"\n")
        known = orjson.loads(header)
        notes = msgspec.convert(known.pop("notes", {}), Notes)
        digest = known.pop("digest", "")
        stamp = stamp_of(path)
        if known != {**stamp, **options, "digest_of_ids": digest_of([packed])}:
            return None
    except (OSError, ValueError):
        return None
    return Ids(unpack(packed), digest, notes, stamp)


def last_remembered(folder: RunFolder, path: Path) -> list[Id]:
    """Return the identities that were remembered of a file last, whatever became of it since."""
    try:
        return unpack(folder.keys(path).read_bytes().partition(b"\n")[2])
    except (FileNotFoundError, StructError):
        return []


def remember(folder: RunFolder, path: Path, ids: Ids, **options: object) -> None:
    """Keep the identities of a file whose content they are; `options` are those it was read with.

    They are of no use where the file was changed while it was read.
    """
    packed = b"".join(ids.ids)
    header = {**(ids.stamp or stamp_of(path)), **options, "digest": ids.digest, "digest_of_ids": digest_of([packed])}
    if ids.notes != Notes():
        header["notes"] = msgspec.to_builtins(ids.notes)
    write_atomic(folder.keys(path), orjson.dumps(header) + b"\n" + packed)


def unpack(packed: bytes) -> list[Id]:
    return [row for (row,) in ONE_ID.iter_unpack(packed)]


def row_ids(path: Path) -> Iterator[Id]:
    """Yield the identities of the undamaged rows of a journal or batch file, in its order."""
    for row in records(path, TRAJECTORY):
        yield make_id(row.prompt_key, row.metadata.ordinal)


def digest_of(parts: Iterable[bytes]) -> str:
    """Return the SHA-256 (hex) of some parts joined."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part)
    return sha.hexdigest()


def stamp_of(path: Path) -> Stamp:
    """What differs for another content: copies and archives may keep mtimes, so inode and ctime are part of it."""
    stat = path.stat()
    times = {"mtime_ns": stat.st_mtime_ns, "ctime_ns": stat.st_ctime_ns}
    return {"size": stat.st_size, "inode": stat.st_ino, **times}
