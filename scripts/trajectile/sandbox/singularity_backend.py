"""Containers of apptainer or singularity as a run's sandboxes."""

import os
from pathlib import Path

from trajectile.configuration.settings import Settings
from trajectile.errors import FatalError
from trajectile.model.local.catalogue import cache_folder
from trajectile.rows import PromptRow
from trajectile.run_folder.paths import RunFolder
from trajectile.run_folder.stop import invocation
from trajectile.sandbox import apptainer, singularity
from trajectile.sandbox.apptainer import Limits, Options
from trajectile.sandbox.backend import Backend
from trajectile.sandbox.images import Images
from trajectile.sandbox.reach import binds, network_mode
from trajectile.sandbox.sif import SifStore
from trajectile.sandbox.singularity import SingularitySandbox


class SingularityBackend(Backend):
    """Containers that this process starts; SIF files are kept in TRAJECTILE_SIF, else in the cache folder.

    Where the machine gives its users no cgroups, containers run without limits and the start report says so.
    """

    def __init__(self, settings: Settings, folder: RunFolder) -> None:
        self._settings, self._scratch = settings, folder.scratch
        self._mounts = tuple(binds(settings.sandbox_mounts))
        self._network = network_mode(settings.sandbox_network)
        self._store = SifStore(Path(os.environ.get("TRAJECTILE_SIF") or cache_folder() / "sif"))
        self._images = Images(self._store, settings.image_pull, invocation(folder))

    def _limits(self) -> Limits:
        settings = self._settings
        return Limits(settings.sandbox_memory, settings.sandbox_cpus, settings.sandbox_pids)

    def describe(self) -> str:
        reach = "no network" if self._network == "none" else f"network {self._network}"
        if problem := apptainer.problem(Options(limits=self._limits())):
            held = f"NO limit on memory, CPU and processes ({problem})"
        else:
            held = "{} of memory, {:g} CPU, {} processes".format(*self._limits())
        engine = Path(apptainer.binary()).name
        return f"Commands run in a container of their own ({engine}) for each prompt: {reach}, {held}."

    def check(self) -> None:
        apptainer.binary()
        if self._settings.sandbox_user:
            raise FatalError("sandbox_user: singularity runs containers as the user who starts them; leave it empty")
        if problem := apptainer.problem(Options(self._network, mounts=self._mounts)):
            raise FatalError(f"sandbox: singularity does not work here: {problem}")

    def reap(self) -> int:
        return singularity.reap(self._scratch)

    def images(self) -> SifStore:
        return self._store

    def image_of(self, row: PromptRow) -> str:
        return row.image or self._settings.sandbox_image

    def open(self, row: PromptRow) -> SingularitySandbox:
        limits = Limits() if apptainer.problem(Options(limits=self._limits())) else self._limits()
        return SingularitySandbox(
            self._scratch,
            self.image_of(row),
            cwd=row.cwd,
            output_limit=self._settings.output_limit,
            network=self._network,
            memory=limits.memory,
            cpus=limits.cpus,
            pids=limits.pids,
            mounts=self._mounts,
            read_only=self._settings.sandbox_read_only,
            images=self._images,
        )
