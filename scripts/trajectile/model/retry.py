"""When to ask again and when to give up."""

import asyncio
import random

from trajectile.errors import PromptError
from trajectile.model.errors import Retryable
from trajectile.model.settings import ModelSettings

JITTER = 0.5


class Retries:
    """The retries of one call, up to `deadline` (event loop's clock, None for no end).

    A rate limit is waited out until the deadline; other failures are retried `max_retries` times.
    """

    def __init__(self, settings: ModelSettings, deadline: float | None) -> None:
        self._settings = settings
        self._deadline = deadline
        self._failures = {True: 0, False: 0}
        self._last: Retryable | None = None

    def wait_s(self, error: Retryable) -> float:
        """Return how long to wait before the next request; raises PromptError where there is to be none."""
        self._last = error
        self._failures[error.bounded] += 1
        if error.bounded and self._failures[True] > self._settings.max_retries:
            raise PromptError(error.kind, f"{error} (after {self._settings.max_retries} retries)")
        wait = self._backoff_s(error.bounded) if not error.wait_s else error.wait_s
        if self._deadline is not None and asyncio.get_running_loop().time() + wait >= self._deadline:
            raise PromptError(error.kind, f"{error} ({self._too_late(error)})")
        return wait

    def expired(self) -> PromptError:
        """Return the error of a call whose deadline has passed: `deadline` where nothing else went wrong with it."""
        if self._last is None:
            return PromptError("deadline", "no answer before the prompt's deadline (prompt_timeout)")
        return PromptError(self._last.kind, f"{self._last} (until the prompt's deadline)")

    def _backoff_s(self, bounded: bool) -> float:
        doublings = min(self._failures[bounded] - 1, 30)
        full: float = min(self._settings.backoff_max_s, self._settings.backoff_s * 2**doublings)
        return full * random.uniform(JITTER, 1.0)

    def _too_late(self, error: Retryable) -> str:
        if error.wait_s:
            return f"the server asks to wait {error.wait_s:.0f} s, which is beyond the prompt's deadline"
        return "the next try would come after the prompt's deadline"
