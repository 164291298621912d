"""From settings to the options of a container: what it may do, take and see."""

from typing import Any, cast

from docker import APIClient
from docker.types import Healthcheck, HostConfig, LogConfig

from trajectile.configuration.settings import Settings
from trajectile.sandbox.guard import GUARD, STATE
from trajectile.sandbox.limits import CPUS, TMPFS, limits_of
from trajectile.sandbox.reach import binds, network_mode

# What a shell run by root needs to do what its user expects: see to files, become others, end processes.
CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"]
TEMPORARY = ("/tmp", "/var/tmp")
STATE_BYTES = "64m"


def host_options(client: APIClient, settings: Settings) -> dict[str, Any]:
    """Return the HostConfig of a container."""
    limits = limits_of(settings)
    config = client.create_host_config(
        network_mode=network_mode(settings.sandbox_network),
        mem_limit=limits.memory,
        memswap_limit=limits.memory,
        pids_limit=limits.pids,
        shm_size=settings.sandbox_tmpfs or TMPFS,
        read_only=settings.sandbox_read_only,
        tmpfs=_tmpfs(settings),
        binds=binds(settings.sandbox_mounts),
        cap_drop=["ALL"],
        cap_add=CAPABILITIES,
        security_opt=["no-new-privileges"],
        init=False,
        log_config=LogConfig(type=LogConfig.types.NONE),
    )
    return config | {"NanoCpus": round((limits.cpus or CPUS) * 1e9)}


def create_options(client: APIClient, settings: Settings, image: str, folder: str, labels: dict[str, str]) -> Any:
    """Return the body of a request for a container that runs a guard and ends with its input."""
    config = client.create_container_config(
        image,
        ["-c", GUARD, "sh", folder],
        entrypoint=["sh"],
        user=settings.sandbox_user or None,
        hostname="sandbox",
        stdin_open=True,
        labels=labels,
        healthcheck=Healthcheck(test=["NONE"]),
        stop_signal="SIGKILL",
        host_config=cast(HostConfig, host_options(client, settings)),
    )
    return config | {"StdinOnce": True, "AttachStdin": True, "AttachStdout": True, "AttachStderr": True}


def _tmpfs(settings: Settings) -> dict[str, str]:
    folders = dict.fromkeys(TEMPORARY, settings.sandbox_tmpfs or TMPFS) if settings.sandbox_read_only else {}
    return {folder: f"exec,mode=1777,size={size}" for folder, size in {STATE: STATE_BYTES, **folders}.items()}
