"""A running container of Docker or podman, and how it came to an end."""

import asyncio

from docker import APIClient

from trajectile.sandbox.docker.engine import Engine
from trajectile.sandbox.docker.stream import Stream
from trajectile.sandbox.guarded import GuardedContainer
from trajectile.sandbox.guarded_command import GuardedCommand

KILLED_STATUS = 137
KILLED, REMOVED = "the container was killed, from outside or for lack of memory", "the container was removed"
REMOVAL_S = 0.5


class Container(GuardedContainer):
    """Container `id`, not started, whose first process is a guard at the other end of `stream`."""

    def __init__(self, engine: Engine, id: str, stream: Stream, folder: str) -> None:
        super().__init__(stream, folder)
        self._engine, self._id = engine, id

    async def started(self) -> None:
        await self._engine.call(lambda client: client.start(self._id))
        await super().started()

    async def open(self, command: GuardedCommand, program: list[str]) -> Stream:
        def create(client: APIClient) -> str:
            return str(client.exec_create(self._id, program, stdin=command.stdin)["Id"])

        command.exec_id = await self._engine.call(create)
        return await self._engine.stream(f"/exec/{command.exec_id}/start", {"Detach": False, "Tty": False})

    async def status_of(self, command: GuardedCommand) -> int:
        return await self._engine.call(lambda client: _status(client, command.exec_id))

    async def find_cause(self) -> str:
        """What is removed is killed first: look twice."""
        cause = await self._engine.call(lambda client: _death(client, self._id))
        if cause == KILLED:
            await asyncio.sleep(REMOVAL_S)
            cause = await self._engine.call(lambda client: _death(client, self._id))
        return cause


def _death(client: APIClient, id: str) -> str:
    """Return how a container ended, "" while it lives."""
    try:
        state = client.inspect_container(id)["State"]
    except Exception as error:
        if getattr(getattr(error, "response", None), "status_code", None) == 404:
            return REMOVED
        raise
    if state["Running"]:
        return ""
    if state["Status"] == "removing":
        return REMOVED
    if state.get("OOMKilled"):
        return "the container ran out of memory; sandbox_memory sets how much it may have"
    if state["ExitCode"] == KILLED_STATUS:
        return KILLED
    return f"the container ended with status {state['ExitCode']}" + (f": {state['Error']}" if state["Error"] else "")


def _status(client: APIClient, exec_id: str) -> int:
    code = client.exec_inspect(exec_id)["ExitCode"]
    return KILLED_STATUS if code is None else int(code)
