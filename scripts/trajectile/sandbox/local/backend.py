"""Scratch folders on this machine as a run's sandboxes."""

from trajectile.configuration.settings import Settings
from trajectile.rows import PromptRow
from trajectile.run_folder.paths import RunFolder
from trajectile.sandbox import scratch
from trajectile.sandbox.backend import Backend
from trajectile.sandbox.local import isolation
from trajectile.sandbox.local.leftovers import end_bwraps
from trajectile.sandbox.local.sandbox import LocalSandbox


class LocalBackend(Backend):
    """Commands run behind bubblewrap, Landlock or nothing."""

    def __init__(self, settings: Settings, folder: RunFolder) -> None:
        super().__init__(settings)
        self._scratch = folder.scratch

    def describe(self) -> str:
        return isolation.describe_isolation(self.settings.local_isolation, self.settings.sandbox_network)

    def check(self) -> None:
        isolation.resolve(self.settings.local_isolation, self.settings.sandbox_network)

    def reap(self) -> int:
        return scratch.reap(self._scratch, end_bwraps)

    def open(self, row: PromptRow) -> LocalSandbox:
        return LocalSandbox(
            self._scratch,
            self.settings.local_isolation,
            cwd=row.cwd,
            output_limit=self.settings.output_limit,
            network=self.settings.sandbox_network,
        )
