"""Scratch folders on this machine as a run's sandboxes."""

from trajectile.configuration.settings import Settings
from trajectile.rows import PromptRow
from trajectile.run_folder.paths import RunFolder
from trajectile.sandbox import isolation, scratch
from trajectile.sandbox.backend import Backend
from trajectile.sandbox.local import LocalSandbox


class LocalBackend(Backend):
    """Commands run behind bubblewrap, Landlock or nothing."""

    def __init__(self, settings: Settings, folder: RunFolder) -> None:
        self._settings, self._scratch = settings, folder.scratch

    def describe(self) -> str:
        return isolation.describe_isolation(self._settings.local_isolation, self._settings.sandbox_network)

    def check(self) -> None:
        isolation.resolve(self._settings.local_isolation, self._settings.sandbox_network)

    def reap(self) -> int:
        return scratch.reap(self._scratch)

    def open(self, row: PromptRow) -> LocalSandbox:
        settings = self._settings
        return LocalSandbox(
            self._scratch,
            settings.local_isolation,
            cwd=row.cwd,
            output_limit=settings.output_limit,
            network=settings.sandbox_network,
        )
