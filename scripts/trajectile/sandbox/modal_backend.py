"""Modal sandboxes as a run's sandboxes."""

import importlib.util
import os
import socket

from trajectile.configuration.settings import Settings
from trajectile.errors import FatalError, UserError
from trajectile.rows import PromptRow
from trajectile.run_folder.paths import RunFolder
from trajectile.sandbox.backend import Backend
from trajectile.sandbox.base import Sandbox
from trajectile.sandbox.reach import network_mode
from trajectile.sandbox.scratch import start_time

RUN, PROMPT, HOST, PID, STARTED = "run", "prompt", "host", "pid", "started"
UNSUPPORTED = ("sandbox_user", "sandbox_mounts", "sandbox_read_only")


class ModalBackend(Backend):
    """Sandboxes in Modal's cloud, in the app `trajectile` of the account that the SDK finds."""

    def __init__(self, settings: Settings, folder: RunFolder) -> None:
        if not importlib.util.find_spec("modal"):
            raise UserError("sandbox: modal needs Modal's SDK: pip install 'trajectile[modal]'")
        self._settings = settings
        self._run = str(folder.root.absolute())
        self._network = network_mode(settings.sandbox_network)

    def describe(self) -> str:
        reach = "no network" if self._network == "none" else "the internet within reach"
        limits = f"{self._settings.sandbox_memory} of memory, {self._settings.sandbox_cpus:g} CPU"
        return f"Commands run in a Modal sandbox of their own for each prompt: {reach}, {limits}."

    def check(self) -> None:
        if self._network not in ("none", "bridge"):
            raise FatalError(f"sandbox_network: {self._network}: Modal has none and bridge")
        if given := [name for name in UNSUPPORTED if getattr(self._settings, name)]:
            raise FatalError(f"{', '.join(given)}: Modal has nothing of the kind; leave it out")

    def reap(self) -> int:
        from trajectile.sandbox.modal_owner import terminate_left

        return terminate_left({RUN: self._run, HOST: socket.gethostname()}, _is_dead)

    def image_of(self, row: PromptRow) -> str:
        return row.image or self._settings.sandbox_image

    def open(self, row: PromptRow) -> Sandbox:
        from trajectile.sandbox.modal import ModalSandbox

        settings = self._settings
        return ModalSandbox(
            self.image_of(row),
            cwd=row.cwd,
            output_limit=settings.output_limit,
            network=self._network,
            memory=settings.sandbox_memory,
            cpus=settings.sandbox_cpus,
            tags=self._tags(row),
        )

    def _tags(self, row: PromptRow) -> dict[str, str]:
        pid = os.getpid()
        owner = {HOST: socket.gethostname(), PID: str(pid), STARTED: start_time(pid)}
        return {RUN: self._run, PROMPT: f"{row.prompt_key}.{row.ordinal}", **owner}


def _is_dead(tags: dict[str, str]) -> bool:
    pid = tags.get(PID, "")
    return pid.isdecimal() and start_time(int(pid)) != tags.get(STARTED)
