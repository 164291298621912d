"""One call of the model, with the manners that keep an endpoint usable."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from trajectile.errors import PromptError
from trajectile.model import request
from trajectile.model.errors import Retryable
from trajectile.model.limiter import Limiter
from trajectile.model.reply import Answer, Reply, read_reply
from trajectile.model.retry import Retries
from trajectile.model.settings import ModelSettings
from trajectile.model.transport import Endpoint
from trajectile.rows import Usage

OnWait = Callable[[str, float], None]
MALFORMED = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
T = TypeVar("T")
Read = Callable[[Answer, float], T]


class ModelClient:
    """A chat-completions endpoint, shared by all prompts of a process.

    `on_wait(reason, seconds)` is called before each wait; `limiter` shows the state, `usage` what all answers so far
    took. Use it as an async context manager, or call `aclose`.
    """

    def __init__(self, settings: ModelSettings, *, on_wait: OnWait | None = None) -> None:
        self.settings = settings
        self.limiter = Limiter(settings.concurrency)
        self._endpoint = Endpoint(settings)
        self._on_wait = on_wait
        self._pausing = 0
        self.usage = Usage()

    async def complete(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], *, deadline: float | None
    ) -> Reply:
        """Ask for the next assistant turn, again where asking again can help.

        `deadline` is a time of the event loop's clock. Raises ContextOverflow and ContentFilter (they end the
        prompt), PromptError (it stays owed) and FatalError (nothing works until the user acts).
        """
        body = request.encode(self.settings, messages, tools)
        reply = await self.ask("/chat/completions", body, self._read_reply, deadline=deadline)
        self.usage = self.usage + reply.usage
        return reply

    def _read_reply(self, answer: Answer, latency_s: float) -> Reply:
        return read_reply(answer, self.settings, latency_s)

    async def ask(self, path: str, body: bytes, read: Read[T], *, deadline: float | None) -> T:
        """Post JSON to `path`, again where that can help, and return what `read` makes of answer and seconds.

        `deadline` and errors as for `complete`; `read` raises Retryable for an answer that is none.
        """
        retries = Retries(self.settings, deadline)
        try:
            async with asyncio.timeout_at(deadline):
                return await self._persist(path, body, read, retries, deadline)
        except TimeoutError:
            raise retries.expired() from None

    async def _persist(self, path: str, body: bytes, read: Read[T], retries: Retries, deadline: float | None) -> T:
        while True:
            self._check_hold(deadline)
            try:
                return await self._attempt(path, body, read)
            except Retryable as error:
                wait_s = retries.wait_s(error)
                if error.wait_s:
                    self.limiter.hold(error.wait_s)
                if self._on_wait:
                    self._on_wait(error.kind, wait_s)
            await self._pause(wait_s)

    async def _pause(self, seconds: float) -> None:
        self._pausing += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self._pausing -= 1

    @property
    def waiting(self) -> int:
        """Calls that wait for the server: after a refusal, or for a place while it takes fewer than are wanted."""
        return self._pausing + self.limiter.waiting

    async def _attempt(self, path: str, body: bytes, read: Read[T]) -> T:
        episode = await self.limiter.acquire()
        try:
            result = await self._exchange(path, body, read)
        except Retryable as error:
            if error.kind == "rate_limit":
                self.limiter.rate_limited(episode)
            raise
        finally:
            self.limiter.release()
        self.limiter.succeeded()
        return result

    async def _exchange(self, path: str, body: bytes, read: Read[T]) -> T:
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            async with asyncio.timeout(self.settings.request_timeout_s):
                answer = await self._endpoint.post(path, body)
        except TimeoutError:
            raise Retryable("timeout", f"no answer within {self.settings.request_timeout_s:g} s") from None
        try:
            return read(answer, clock() - started)
        except MALFORMED as error:
            kind = type(error).__name__
            raise Retryable("bad_answer", f"the answer is of a form that cannot be read ({kind})") from error

    def _check_hold(self, deadline: float | None) -> None:
        if deadline is not None and self.limiter.hold_until > deadline:
            wait = self.limiter.hold_until - asyncio.get_running_loop().time()
            raise PromptError("rate_limit", f"the server asks to wait {wait:.0f} s, beyond the prompt's deadline")

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    async def __aenter__(self) -> "ModelClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
