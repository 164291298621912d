"""What a container may take of the machine it runs on."""

from typing import NamedTuple

from trajectile.configuration.settings import Settings

MEMORY, CPUS, PIDS, TMPFS = "2g", 1.0, 512, "256m"


class Limits(NamedTuple):
    """Memory as in 4g, without swap on top; CPUs; processes; None for no limit."""

    memory: str | None = None
    cpus: float | None = None
    pids: int | None = None

    def __str__(self) -> str:
        said = [f"{self.memory} of memory"] if self.memory else []
        said += [f"{self.cpus:g} CPU"] if self.cpus else []
        return ", ".join([*said, f"{self.pids} processes"] if self.pids else said)


def limits_asked(settings: Settings) -> Limits:
    """Return the limits that the settings insist on."""
    return Limits(settings.sandbox_memory, settings.sandbox_cpus, settings.sandbox_pids)


def limits_of(settings: Settings) -> Limits:
    """Return the limits of a prompt's container, the usual ones where nothing is set."""
    memory, cpus, pids = limits_asked(settings)
    return Limits(memory or MEMORY, cpus or CPUS, pids or PIDS)
