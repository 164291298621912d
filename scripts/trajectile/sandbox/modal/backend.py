"""Modal sandboxes as a run's sandboxes."""

import importlib.util

from trajectile.configuration.settings import Settings
from trajectile.errors import FatalError, UserError
from trajectile.rows import PromptRow
from trajectile.run_folder.paths import RunFolder
from trajectile.sandbox import ownership
from trajectile.sandbox.backend import ContainerBackend
from trajectile.sandbox.base import Sandbox
from trajectile.sandbox.limits import limits_of


class ModalBackend(ContainerBackend):
    """Sandboxes in Modal's cloud, in the app `trajectile` of the account that the SDK finds."""

    kind = "a Modal sandbox"

    def __init__(self, settings: Settings, folder: RunFolder) -> None:
        if not importlib.util.find_spec("modal"):
            raise UserError("sandbox: modal needs Modal's SDK: pip install 'trajectile[modal]'")
        super().__init__(settings, folder)
        self._limits = limits_of(settings)._replace(pids=None)

    def held_to(self) -> str:
        return str(self._limits)

    def check(self) -> None:
        if self.network not in ("none", "bridge"):
            raise FatalError(f"sandbox_network: {self.network}: Modal has none and bridge")

    def reap(self) -> int:
        from trajectile.sandbox.modal.leftovers import terminate_left

        return terminate_left(ownership.tags_here(self.run))

    def open(self, row: PromptRow) -> Sandbox:
        from trajectile.sandbox.modal.sandbox import ModalSandbox

        return ModalSandbox(
            self.image_of(row),
            cwd=row.cwd,
            output_limit=self.settings.output_limit,
            network=self.network,
            memory=self._limits.memory,
            cpus=self._limits.cpus,
            tags=ownership.tags(self.run, row),
        )
