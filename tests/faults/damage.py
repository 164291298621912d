"""What happens to the files of a run between two starts: torn by power cuts, edited and deleted by people."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from faults.evidence import lines_of

JUNK = (b'{"prompt_key": 7}', b"\xff\xfe\x00", b"\0" * 64, b"<<<<<<< HEAD", b'{"conversations": [', b"null")


class Damage:
    """Damages the files of a run folder; `made` holds the fragments that it left there."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.rng = folder, rng
        self.made: set[bytes] = set()

    def strike(self) -> str:
        """Do one thing to one file, and return what was done to which."""
        kind = self.rng.choice(KINDS)
        return f"{kind.__name__}({kind(self) or 'nothing there'})"

    def one(self, *patterns: str) -> Path | None:
        paths = sorted(path for pattern in patterns for path in self.folder.glob(pattern) if path.stat().st_size)
        return self.rng.choice(paths) if paths else None

    def write(self, path: Path, lines: list[bytes], end: bytes = b"\n") -> str:
        path.write_bytes(b"\n".join(lines) + end)
        return str(path.relative_to(self.folder))

    def fragment(self, line: bytes) -> bytes:
        cut = line[: self.rng.randint(1, len(line) - 1)]
        self.made.add(cut)
        return cut


ROWS = ("batch_*.jsonl", "journal/shard_*.jsonl")


def tear_last_line(damage: Damage) -> str | None:
    if path := damage.one(*ROWS, "failures/shard_*.jsonl"):
        lines = lines_of(path)
        return damage.write(path, [*lines[:-1], damage.fragment(lines[-1])], end=b"")
    return None


def tear_inner_line(damage: Damage) -> str | None:
    if path := damage.one(*ROWS):
        lines = lines_of(path)
        place = damage.rng.randrange(len(lines))
        lines[place] = damage.fragment(lines[place])
        return damage.write(path, lines)
    return None


def overwrite_line(damage: Damage) -> str | None:
    if path := damage.one(*ROWS):
        lines, junk = lines_of(path), damage.rng.choice(JUNK)
        lines[damage.rng.randrange(len(lines))] = junk
        damage.made.add(junk)
        return damage.write(path, lines)
    return None


def delete_line(damage: Damage) -> str | None:
    if path := damage.one(*ROWS):
        lines = lines_of(path)
        del lines[damage.rng.randrange(len(lines))]
        return damage.write(path, lines, end=b"\n" if lines else b"")
    return None


def delete_file(damage: Damage) -> str | None:
    if path := damage.one(*ROWS):
        path.unlink()
        return str(path.relative_to(damage.folder))
    return None


def empty_file(damage: Damage) -> str | None:
    if path := damage.one(*ROWS):
        path.write_bytes(b"")
        return str(path.relative_to(damage.folder))
    return None


def respell_lines(damage: Damage) -> str | None:
    """Nothing is lost: another editor's line ends, blank lines, another order, no end of the last line."""
    if path := damage.one(*ROWS):
        lines = lines_of(path)
        damage.rng.shuffle(lines)
        lines = [line + damage.rng.choice([b"", b"\r", b"\n"]) for line in lines]
        return damage.write(path, lines, end=damage.rng.choice([b"", b"\n"]))
    return None


def touch_all(damage: Damage) -> str:
    """Nothing is lost: a fresh copy of the folder."""
    for path in damage.folder.rglob("*"):
        os.utime(path)
    return "all files"


def copy_shard_rows(damage: Damage) -> str | None:
    """Nothing is lost: the rows of one batch twice."""
    if path := damage.one("batch_*.jsonl"):
        return damage.write(path, lines_of(path) * 2)
    return None


def forget(damage: Damage) -> str | None:
    """Delete what can be made again: remembered keys, results, manifests, shard files, Snakemake's own records."""
    names = ["keys", "shards", "checkpoint.json", "trajectories.jsonl", "statistics.json", "discarded.jsonl", "logs"]
    path = damage.rng.choice([*(damage.folder / name for name in names), damage.folder.parents[1] / ".snakemake"])
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()
    else:
        return None
    return path.name


def spoil_notes(damage: Damage) -> str | None:
    """Overwrite a file that is only a note: nothing that counts is lost."""
    notes = ("keys/*.keys", "journal/*.times", "journal/*.lease", "run.lease", "checkpoint.json", "run.stop")
    if path := damage.one(*notes):
        path.write_bytes(damage.rng.choice(JUNK))
        return str(path.relative_to(damage.folder))
    return None


KINDS: tuple[Callable[[Damage], str | None], ...] = (
    *(tear_last_line, tear_last_line, tear_inner_line, overwrite_line, delete_line, delete_file, empty_file),
    *(respell_lines, touch_all, copy_shard_rows, forget, forget, spoil_notes),
)
