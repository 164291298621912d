"""How many requests may be in flight at one endpoint, adapted to what it takes."""

import asyncio
from collections import deque

DECREASE = 0.8


class Limiter:
    """Concurrency that shrinks by a fifth in a rate-limit episode and grows by one after a limit's worth of successes.

    All attributes may be read to show the state; `hold_until` is a time of the event loop's clock before which no
    request starts. An episode is every 429 to a request that began before the limit was last lowered.
    """

    def __init__(self, concurrency: int) -> None:
        self.maximum = float(max(1, concurrency))
        self.limit = self.maximum
        self.in_flight = 0
        self.waiting = 0
        self.hold_until = 0.0
        self._episode = 0
        self._successes = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self) -> int:
        """Wait for a place; returns the number to hand to `rate_limited`. Give the place back with `release`."""
        if self.waiting or not self._free():
            await self._wait()
        else:
            self.in_flight += 1
        return self._episode

    def release(self) -> None:
        self.in_flight -= 1
        self._wake()

    def succeeded(self) -> None:
        self._successes += 1
        if self._successes >= self.limit:
            self._successes = 0
            self.limit = min(self.maximum, self.limit + 1)
            self._wake()

    def rate_limited(self, episode: int) -> None:
        """Lower the limit, once an episode."""
        if episode == self._episode:
            self._episode += 1
            self._successes = 0
            self.limit = max(1.0, self.limit * DECREASE)

    def hold(self, wait_s: float) -> None:
        """Let nobody start before `wait_s` are over."""
        self.hold_until = max(self.hold_until, asyncio.get_running_loop().time() + wait_s)

    def _free(self) -> bool:
        return self.in_flight < int(self.limit) and asyncio.get_running_loop().time() >= self.hold_until

    async def _wait(self) -> None:
        place = asyncio.get_running_loop().create_future()
        self._queue.append(place)
        self.waiting += 1
        self._wake()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.release()
            raise
        finally:
            self.waiting -= 1

    def _wake(self) -> None:
        """Give free places to those that wait longest; set an alarm where only time stands in the way."""
        while self._queue and self._free():
            place = self._queue.popleft()
            if not place.done():
                self.in_flight += 1
                place.set_result(None)
        if self._queue and self.in_flight < int(self.limit) and self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(self.hold_until, self._alarm)

    def _alarm(self) -> None:
        self._timer = None
        self._wake()
