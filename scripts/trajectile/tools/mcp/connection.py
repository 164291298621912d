"""A connection to a server, made when it is first needed and again after the server died."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, TypeVar

from trajectile.sandbox.base import Sandbox
from trajectile.tools.mcp.lines import Said
from trajectile.tools.mcp.results import hide
from trajectile.tools.mcp.servers import Server
from trajectile.tools.mcp.transports import transport

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")
REASON_CHARACTERS = 500


class Unreachable(Exception):
    """No connection to a server can be had; the message says why."""


class Broken(Exception):
    """The connection ended during a call; the message says why."""


class Connection:
    """At most one session with `server`; a sandbox's server runs in `sandbox`."""

    def __init__(self, server: Server, sandbox: Sandbox | None, timeout_s: float) -> None:
        self._server, self._sandbox, self._timeout_s = server, sandbox, timeout_s
        self._session: Session | None = None

    async def ask(self, question: "Callable[[Client], Awaitable[T]]") -> T:
        """What the server answers. Unreachable, Broken, or TimeoutError where it takes too long.

        Each of these ends the session once nobody else waits for an answer: the next question begins another. It goes
        on after a ValueError: the server refuses, or its answer is not what the protocol asks for.
        """
        if self._session is None:
            self._session = Session(self._server, self._sandbox, self._timeout_s)
        session = self._session
        session.users += 1
        try:
            return await session.ask(question)
        except (Broken, Unreachable, TimeoutError):
            if self._session is session:
                self._session = None
            raise
        finally:
            session.users -= 1
            if self._session is not session and not session.users:
                await session.close()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class Session:
    """The SDK's client, opened and closed by one task, as its cancel scopes ask."""

    def __init__(self, server: Server, sandbox: Sandbox | None, timeout_s: float) -> None:
        self.users = 0
        self._server, self._sandbox, self._timeout_s = server, sandbox, timeout_s
        self._said = Said()
        self._release = asyncio.Event()
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._hold())

    async def _hold(self) -> None:
        try:
            if lack := self._server.lacks():
                raise Unreachable(lack)
            from mcp import Client

            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._timeout_s):
                    way = transport(self._server, self._sandbox, self._said)
                    client = await stack.enter_async_context(Client(way))
                self._client.set_result(client)
                await self._release.wait()
        except Exception as error:
            if not self._client.done():
                self._client.set_exception(Unreachable(self._reason_to_fail(error)))
                self._client.exception()  # it may have no reader

    async def ask(self, question: "Callable[[Client], Awaitable[T]]") -> T:
        client = await asyncio.shield(self._client)
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST, REQUEST_TIMEOUT

        try:
            async with asyncio.timeout(self._timeout_s):
                return await question(client)
        except TimeoutError:
            raise
        except MCPError as error:
            if error.code == REQUEST_TIMEOUT:
                raise TimeoutError from error
            # A server over HTTP that was started anew does not know the session.
            if error.code in (CONNECTION_CLOSED, INVALID_REQUEST):
                raise Broken(self._reason(error)) from error
            raise ValueError(self._reason(error)) from error
        except (PermissionError, RuntimeError, ValueError) as error:
            raise ValueError(self._reason(error)) from error
        except Exception as error:
            raise Broken(self._reason(error)) from error

    def _reason(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        text = f"no answer after {self._timeout_s:g} s" if isinstance(error, TimeoutError) else str(error)
        return hide(text or type(error).__name__, self._server.secrets)

    def _reason_to_fail(self, error: BaseException) -> str:
        """What a server printed says more than that it is gone; it is for the user, not for the model."""
        printed = hide(str(self._said), self._server.secrets)[-REASON_CHARACTERS:]
        return f"{self._reason(error)}; it printed: {printed}" if printed else self._reason(error)

    async def close(self) -> None:
        self._release.set()
        if not self._client.done():
            self._task.cancel()
        await asyncio.wait([self._task])
