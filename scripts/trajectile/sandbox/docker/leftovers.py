"""Labels that say whose a container is, and the end of those whose owner is dead."""

import logging
import time

from docker import APIClient

from trajectile.errors import FatalError
from trajectile.rows import PromptRow
from trajectile.sandbox import ownership
from trajectile.sandbox.docker.engine import Engine, EngineError

PREFIX = "trajectile."
REMOVE_ATTEMPTS = 6
RETRY_S = 0.05
log = logging.getLogger(__name__)


def labels(run: str, row: PromptRow) -> dict[str, str]:
    """Return the labels of a prompt's container; `run` is the absolute path of the run folder."""
    return {PREFIX + name: value for name, value in ownership.tags(run, row).items()}


def reap_containers(engine: Engine, run: str) -> int:
    """Remove the containers of a run, with their volumes, whose owner ran on this host and is dead; how many."""
    wanted = {"label": [f"{PREFIX}{name}={value}" for name, value in ownership.tags_here(run).items()]}
    found = engine.ask(lambda client: client.containers(all=True, filters=wanted))
    dead = [container["Id"] for container in found if _is_dead(container["Labels"])]
    return sum(remove(engine, id) for id in dead)


def _is_dead(labels: dict[str, str]) -> bool:
    return ownership.owner_of({name.removeprefix(PREFIX): value for name, value in labels.items()}).is_dead


def remove(engine: Engine, id: str) -> bool:
    """Remove a container, with its volumes, running or not; False where another was first, or it stays."""

    def request(client: APIClient) -> None:
        client.remove_container(id, v=True, force=True)

    for attempt in range(REMOVE_ATTEMPTS):
        try:
            engine.ask(request)
            return True
        except EngineError as error:
            if error.missing:
                return False
            problem: Exception = error
        except FatalError as error:
            problem = error
            break
        time.sleep(RETRY_S * 2**attempt)  # podman refuses while a container is ending
    log.warning("container %s is left behind: %s", id[:12], problem)
    return False
