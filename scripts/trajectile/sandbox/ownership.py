"""Who owns a sandbox, in words that tell a living owner from one that was killed."""

import os
import socket
from collections.abc import Mapping
from typing import NamedTuple

from trajectile.processes import start_time
from trajectile.rows import PromptRow

RUN, PROMPT = "run", "prompt"


class Owner(NamedTuple):
    """A process that cannot be mistaken for a later one with the same number; `started` as start_time has it."""

    host: str
    pid: str
    started: str

    @property
    def is_dead(self) -> bool:
        """Whether the process ran on this host and is no more."""
        here = self.host == socket.gethostname() and self.pid.isdecimal()
        return here and start_time(int(self.pid)) != self.started


def this_process() -> Owner:
    pid = os.getpid()
    return Owner(socket.gethostname(), str(pid), start_time(pid))


def tags(run: str, row: PromptRow) -> dict[str, str]:
    """Return what to write on a prompt's sandbox; `run` is the absolute path of the run folder."""
    return {RUN: run, PROMPT: f"{row.prompt_key}.{row.ordinal}", **this_process()._asdict()}


def tags_here(run: str) -> dict[str, str]:
    """Return the tags that all sandboxes of a run share that were made on this host."""
    return {RUN: run, "host": socket.gethostname()}


def owner_of(written: Mapping[str, str]) -> Owner:
    return Owner(*(written.get(name, "") for name in Owner._fields))
