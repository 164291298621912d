"""How sandboxes die, and what each kind says of it."""

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import psutil
from modal_standin import shared

from sandbox_contract import engines
from sandbox_contract.subjects import Subject

# Four shells double a text until memory runs out.
HOG = f"{'(x=x; while :; do x=$x$x; done) & ' * 4} wait"
HOG_LIMIT = "128m"


class Ending(NamedTuple):
    """What ends one of a subject's sandboxes from outside, or (`command`) readies it to die of a command of its own.

    `cause` is what the failure says.
    """

    end: Callable[[Subject], None]
    cause: str
    command: str = ""
    settings: Mapping[str, Any] = MappingProxyType({})


def first_of(subject: Subject) -> Any:
    return engines.client(subject.engine).containers.get(subject.containers()[0])


def remove(subject: Subject) -> None:
    first_of(subject).remove(force=True)


def kill(subject: Subject) -> None:
    first_of(subject).kill()


def choose(pid: int) -> None:
    """Let the kernel take this process first when memory runs out, as it may on a machine that has none left."""
    Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


def keeper(subject: Subject) -> int:
    """Return the first process of an apptainer container."""
    [folder, *_] = subject.folders()
    return int((Path(folder) / "first").read_text().split()[0])


def kill_supervisor(subject: Subject) -> None:
    """It is the oldest of the processes of a local sandbox that write to its log, which those of commands do not."""
    [folder, *_] = subject.folders()
    processes = [each for each in psutil.process_iter() if logs_to(each.pid, f"{folder}/log")]
    min(processes, key=psutil.Process.create_time).kill()


def logs_to(pid: int, log: str) -> bool:
    try:
        return str(Path(f"/proc/{pid}/fd/2").readlink()) == log
    except OSError:
        return False


def terminate(subject: Subject) -> None:
    shared.running().end(subject.containers()[0], 137)


def by_memory(process: Callable[[Subject], int], cause: str) -> Ending:
    return Ending(lambda subject: choose(process(subject)), cause, HOG, {"sandbox_memory": HOG_LIMIT})


def first_process(subject: Subject) -> int:
    return int(first_of(subject).attrs["State"]["Pid"])


OF_DOCKER = {
    "removed": Ending(remove, "the container was removed"),
    "killed": Ending(kill, "the container was killed"),
    "out of memory": by_memory(first_process, "ran out of memory; sandbox_memory"),
}
# Its service does not tell what a container died of.
OF_PODMAN = OF_DOCKER | {"out of memory": by_memory(first_process, "was killed, from outside or for lack of memory")}
OF_SINGULARITY = {
    "killed": Ending(lambda subject: os.kill(keeper(subject), signal.SIGKILL), "the container ended: killed"),
    "out of memory": by_memory(keeper, "the container ended: killed, for lack of memory or from outside"),
}
OF_LOCAL = {"killed": Ending(kill_supervisor, "the local sandbox ended: its supervisor was killed")}
OF_MODAL = {"killed": Ending(terminate, "the Modal sandbox ended: terminated, or out of memory")}
ENDINGS = {"docker": OF_DOCKER, "podman": OF_PODMAN, "singularity": OF_SINGULARITY, "modal": OF_MODAL}
NO_SUCH = {
    "removed": "there is nothing to remove but its processes",
    "out of memory": "it has no limit of its own, or does not tell what it died of",
}
KINDS = tuple(OF_DOCKER)


def endings_of(subject: Subject) -> dict[str, Ending]:
    return ENDINGS.get(subject.name, OF_LOCAL)
