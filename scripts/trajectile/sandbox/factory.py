"""The backend of a run's sandboxes, by its name in the settings."""

from importlib import import_module

from trajectile.configuration.settings import Settings
from trajectile.run_folder.paths import RunFolder
from trajectile.sandbox.backend import Backend

# Loaded when asked for: each brings libraries that the others do not need.
BACKENDS = {
    "local": "trajectile.sandbox.local.backend:LocalBackend",
    "docker": "trajectile.sandbox.docker.backend:DockerBackend",
    "singularity": "trajectile.sandbox.singularity.backend:SingularityBackend",
    "modal": "trajectile.sandbox.modal.backend:ModalBackend",
}


def make_backend(settings: Settings, folder: RunFolder) -> Backend:
    """Return the backend that `settings.sandbox` names, for the run in `folder`; no engine is asked yet."""
    module, _, name = BACKENDS[settings.sandbox].partition(":")
    backend: Backend = getattr(import_module(module), name)(settings, folder)
    return backend
