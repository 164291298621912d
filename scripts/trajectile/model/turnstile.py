"""Lets tasks that become ready at the same time act one after the other."""

import asyncio
from collections import deque


class Turnstile:
    """Lets one task through in each turn of the event loop, in the order in which they come.

    Before Python 3.12 aiohttp writes a request in the turn after the one that put it together. When many answers come
    at once, all their next requests would be put together first and leave together, and the processor would idle until
    the answers come, together again.
    """

    def __init__(self) -> None:
        self._queue: deque[asyncio.Future[None]] = deque()
        self._turning = False

    async def enter(self) -> None:
        if self._turning:
            place = asyncio.get_running_loop().create_future()
            self._queue.append(place)
            await place
        else:
            self._turn()

    def _turn(self) -> None:
        asyncio.get_running_loop().call_soon(self._next)
        self._turning = True

    def _next(self) -> None:
        self._turning = False
        while self._queue and not self._turning:
            place = self._queue.popleft()
            if not place.done():
                place.set_result(None)
                self._turn()
