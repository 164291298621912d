"""One command of a local sandbox: its channel to the keeper."""

import asyncio
import os
import socket
from contextlib import suppress

from trajectile.sandbox.base import OutputBuffer
from trajectile.sandbox.command import Command, break_off, settle
from trajectile.sandbox.pipes import READ_BYTES, Pipes

# A keeper that went down with its supervisor must not be taken for the cause: the supervisor's end is heard of by then.
LOSS_GRACE_S = 0.1


class LocalCommand(Command):
    """Handed over to the server at once; `keeper` is the pid that holds all that the command starts."""

    def __init__(self, inbox: socket.socket, output: OutputBuffer, *, stdin: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self.keeper: asyncio.Future[int] = self._loop.create_future()
        self._said = b""
        self._channel, theirs = socket.socketpair()
        stdout, printed = os.pipe()
        read, fed = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), -1)
        super().__init__(Pipes(stdout, fed, output))
        try:
            socket.send_fds(inbox, [b"!"], [theirs.fileno(), read, printed])
        except OSError:
            self.close()
            raise
        finally:
            theirs.close()
            os.close(read)
            os.close(printed)
        self._channel.setblocking(False)
        self._loop.add_reader(self._channel, self._hear)

    async def send(self, script: bytes) -> None:
        with suppress(ConnectionError):
            await self._loop.sock_sendall(self._channel, script)
            self._channel.shutdown(socket.SHUT_WR)

    def _hear(self) -> None:
        with suppress(BlockingIOError):
            try:
                said = self._channel.recv(READ_BYTES)
            except ConnectionError:
                said = b""
            if not said:
                self._loop.remove_reader(self._channel)
                self._loop.call_later(0 if self.status.done() else LOSS_GRACE_S, self._mourn)
            *lines, self._said = (self._said + said).split(b"\n")
            for word, number in (line.split() for line in lines):
                settle(self.keeper if word == b"keeper" else self.status, int(number))

    def _mourn(self) -> None:
        self.fail("a command's keeper was killed")
        settle(self.gone, None)

    def fail(self, cause: str) -> None:
        break_off(self.keeper, cause)
        super().fail(cause)

    def close(self) -> None:
        if self._channel.fileno() < 0:
            return
        super().close()
        self._loop.remove_reader(self._channel)
        self._channel.close()
