"""Containers of apptainer or singularity as a run's sandboxes."""

import os
from pathlib import Path

from trajectile.configuration.settings import Settings
from trajectile.errors import MachineError
from trajectile.model.local.catalogue import cache_folder
from trajectile.rows import PromptRow
from trajectile.run_folder.paths import RunFolder
from trajectile.run_folder.stop import invocation
from trajectile.sandbox import scratch
from trajectile.sandbox.backend import ContainerBackend
from trajectile.sandbox.images import Images
from trajectile.sandbox.limits import Limits, limits_asked, limits_of
from trajectile.sandbox.singularity import apptainer
from trajectile.sandbox.singularity.apptainer import Options
from trajectile.sandbox.singularity.container import end_left
from trajectile.sandbox.singularity.sandbox import SingularitySandbox
from trajectile.sandbox.singularity.sif import SifStore

LIMITS = ("sandbox_memory", "sandbox_cpus", "sandbox_pids")


class SingularityBackend(ContainerBackend):
    """Containers that this process starts; SIF files are kept in TRAJECTILE_SIF, else in the cache folder.

    Where the machine gives its users no limits, containers run without the usual ones and the start report says so;
    limits that are set are insisted on.
    """

    def __init__(self, settings: Settings, folder: RunFolder) -> None:
        super().__init__(settings, folder)
        self._scratch = folder.scratch
        store = SifStore(Path(os.environ.get("TRAJECTILE_SIF") or cache_folder() / "sif"))
        self._images = Images(store, settings.image_pull, invocation(folder))

    @property
    def kind(self) -> str:
        return f"a container ({Path(apptainer.binary()).name})"

    def _limits(self) -> Limits:
        """Return those that hold here: the usual ones where they can be had, else those that are set, else none."""
        choices = (limits_of(self.settings), limits_asked(self.settings))
        return next((limits for limits in choices if not apptainer.problem(Options(limits=limits))), Limits())

    def held_to(self) -> str:
        if limits := str(self._limits()):
            return limits
        return f"NO limit on memory, CPU and processes ({apptainer.problem(Options(limits=limits_of(self.settings)))})"

    def _refuse_unheld(self) -> None:
        given = limits_asked(self.settings)
        if any(given) and (problem := apptainer.problem(Options(limits=given))):
            names = ", ".join(f"{name}: {value}" for name, value in zip(LIMITS, given, strict=True) if value)
            raise MachineError(
                f"{names}: {self.kind} cannot be held to that here: {problem}. Leave it out to go on without, start "
                "the run as root, or set sandbox to docker."
            )

    def check(self) -> None:
        apptainer.binary()
        if problem := apptainer.problem(Options(self.network, mounts=self.mounts), self._scratch.absolute()):
            raise MachineError(
                f"sandbox: singularity does not work here: {problem}. What containers write goes to {self._scratch}, "
                "which has to be on a local disk: TRAJECTILE_SCRATCH names one."
            )
        self._refuse_unheld()

    def reap(self) -> int:
        return scratch.reap(self._scratch, end_left)

    def images(self) -> Images:
        return self._images

    def open(self, row: PromptRow) -> SingularitySandbox:
        self._refuse_unheld()  # the check may have been left out, or made on another machine
        options = Options(self.network, self._limits(), self.mounts, self.settings.sandbox_read_only)
        return SingularitySandbox(
            self._scratch,
            self.image_of(row),
            cwd=row.cwd,
            output_limit=self.settings.output_limit,
            options=options,
            images=self._images,
        )
