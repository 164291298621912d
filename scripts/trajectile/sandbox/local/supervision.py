"""The owner's side of a supervisor: start it, run commands through it, end it."""

import asyncio
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from trajectile.sandbox import processes
from trajectile.sandbox.base import OutputBuffer, SandboxDied
from trajectile.sandbox.command import Runner
from trajectile.sandbox.local.command import LocalCommand
from trajectile.sandbox.local.isolation import Launch

CLOSE_GRACE_S = 10.0
CAUSE_BYTES = 500


class Supervisor(Runner[LocalCommand]):
    """A running supervisor; `log` takes what it and bubblewrap say on stderr."""

    def __init__(self, launch: Launch, log: Path) -> None:
        self._log = log
        self._cause = ""
        self._commands: set[LocalCommand] = set()
        self._control, control = socket.socketpair()
        self._inbox, inbox = socket.socketpair()
        passed = [control.fileno(), inbox.fileno(), *launch.rulesets]
        try:
            with log.open("wb") as stderr:
                self._process = subprocess.Popen(
                    [*launch.command, *map(str, passed)],
                    env=launch.env,
                    cwd=launch.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=stderr,
                    stderr=stderr,
                    pass_fds=passed,
                    # bwrap, where a signal to the group ends its child as it starts, would wait for ever
                    process_group=0,
                )
        finally:
            control.close()
            inbox.close()
            for ruleset in launch.rulesets:
                os.close(ruleset)
        self._control.setblocking(False)
        asyncio.get_running_loop().add_reader(self._control, self._lost)

    async def started(self) -> None:
        """A supervisor takes commands at once."""

    def begin(self, output: OutputBuffer, *, stdin: bool) -> LocalCommand:
        if self._cause:
            raise SandboxDied(self._cause)
        try:
            command = LocalCommand(self._inbox, output, stdin=stdin)
        except ConnectionError as error:
            raise SandboxDied(self._find_cause()) from error
        except OSError as error:  # too many open files: not the command's fault
            raise SandboxDied(f"a command could not be started: {error}") from error
        self._commands.add(command)
        command.gone.add_done_callback(lambda _: self._forget(command))
        return command

    def _forget(self, command: LocalCommand) -> None:
        self._commands.discard(command)
        command.pipes.finish_output()
        command.close()

    async def kill(self, command: LocalCommand) -> None:
        if not command.gone.done():
            keeper = await asyncio.shield(command.keeper)
            self._control.send(keeper.to_bytes(4, sys.byteorder))
            await asyncio.shield(command.gone)

    def _lost(self) -> None:
        asyncio.get_running_loop().remove_reader(self._control)
        self._cause = self._cause or self._find_cause()
        for command in list(self._commands):
            command.fail(self._cause)
            command.close()

    def _find_cause(self) -> str:
        said = self._log.read_bytes()[-CAUSE_BYTES:].decode(errors="replace").strip()
        return f"the local sandbox ended: {said or 'its supervisor was killed'}"

    async def close(self, cause: str = "the sandbox was closed") -> None:
        """End the supervisor and everything in it; returns when they are gone."""
        if self._control.fileno() < 0:
            return
        self._cause = self._cause or cause
        self._lost()
        self._control.shutdown(socket.SHUT_WR)
        self._inbox.close()
        await processes.end(self._process, CLOSE_GRACE_S)
        await self._guard_ended()
        self._control.close()

    async def _guard_ended(self) -> None:
        """It outlives its stand-in where that was killed."""
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(CLOSE_GRACE_S):
                while await asyncio.get_running_loop().sock_recv(self._control, 1):
                    pass
