"""What a dataset row asks for, and its key: the hash of that and of nothing else."""

import hashlib
import posixpath
from typing import Any, NamedTuple

import orjson

from trajectile.dataset.raw_rows import NotJson, loads
from trajectile.dataset.starts import BadStart, start_turns
from trajectile.rows import Turn

PROMPT_COLUMNS = ("prompt", "conversations", "messages")
PLACE_COLUMNS = frozenset({"image", "docker_image", "cwd"})


class Work(NamedTuple):
    """What a row asks for: the column of its prompt and what is in it, as turns too, image and cwd."""

    column: str
    start: Any
    turns: list[Turn]
    image: str
    cwd: str

    def digest(self) -> bytes:
        """Return the SHA-256 of what defines the work: prompt text or canonical turns, image, cwd."""
        start = self.start if isinstance(self.start, str) else [_canonical(turn) for turn in self.turns]
        return hashlib.sha256(orjson.dumps([start, self.image, self.cwd])).digest()


def prompt_key(start: Any, turns: list[Turn], image: str, cwd: str) -> str:
    """Return the SHA-256 (hex) of what defines the work."""
    return Work("prompt", start, turns, image, cwd).digest().hex()


def work_of(content: dict[str, Any]) -> Work:
    """Return what a row asks for; BadStart says why it cannot be used."""
    column, start = _start(content)
    turns = start_turns(start)
    if PLACE_COLUMNS.isdisjoint(content):
        return Work(column, start, turns, "", "")
    image = _text(content, "image") or _text(content, "docker_image")
    cwd = _text(content, "cwd")
    if cwd and posixpath.normpath(cwd.lstrip("/") or ".").split("/")[0] == "..":
        raise BadStart(f"cwd {cwd!r} leads out of the sandbox")
    return Work(column, start, turns, image, cwd)


def _start(content: dict[str, Any]) -> tuple[str, Any]:
    """Return the column that holds the prompt, and what it holds."""
    if prompt := content.get("prompt"):
        return "prompt", prompt
    present = [name for name in PROMPT_COLUMNS if name in content]
    if not present:
        raise BadStart(f"no prompt: its columns are {', '.join(map(repr, content)) or 'none'}")
    # an empty cell of a table is "" where its file has no other way to say nothing
    column = next((name for name in present if content[name] not in (None, "")), present[0])
    start = content[column]
    if column == "prompt" or not isinstance(start, str):
        return column, start
    try:  # a table holds turns as JSON text
        turns = loads(start.encode())[0]
    except NotJson:
        turns = None
    if not isinstance(turns, list):
        raise BadStart(f"{column} is a text, a list of turns was expected")
    return column, turns


def _text(content: dict[str, Any], name: str) -> str:
    value = content.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or "\0" in value:
        raise BadStart(f"{name} is {value!r:.40}, a text was expected")
    return value


def _canonical(turn: Turn) -> list[Any]:
    calls = [[call.id, call.name, call.arguments] for call in turn.tool_calls]
    return [turn.from_, turn.value, turn.reasoning, calls, turn.tool_call_id, turn.name]
