"""How the number of requests in flight follows the endpoint."""

import asyncio

from trajectile.model.limiter import Limiter


def test_an_episode_lowers_the_limit_once() -> None:
    async def episode() -> Limiter:
        limiter = Limiter(10)
        places = [await limiter.acquire() for _ in range(10)]
        for place in places:
            limiter.rate_limited(place)
            limiter.release()
        return limiter

    limiter = asyncio.run(episode())
    assert (limiter.limit, limiter.in_flight) == (8.0, 0)


def test_the_limit_never_falls_below_one() -> None:
    async def storm() -> float:
        limiter = Limiter(4)
        for _ in range(100):
            limiter.rate_limited(await limiter.acquire())
            limiter.release()
        return limiter.limit

    assert asyncio.run(storm()) == 1.0


def test_growth_takes_a_window_of_successes_and_stops_at_the_start() -> None:
    async def recovery() -> list[float]:
        limiter = Limiter(5)
        limiter.rate_limited(await limiter.acquire())
        limits = []
        for _ in range(12):
            limiter.succeeded()
            limits.append(limiter.limit)
        return limits

    assert asyncio.run(recovery()) == [4.0, 4.0, 4.0] + [5.0] * 9


def test_the_first_in_the_queue_is_served_first() -> None:
    async def queue() -> list[int]:
        limiter = Limiter(2)
        order = []

        async def one(number: int) -> None:
            await limiter.acquire()
            order.append(number)
            assert limiter.in_flight <= 2
            await asyncio.sleep(0.001)
            limiter.release()

        await asyncio.gather(*[one(number) for number in range(20)])
        assert (limiter.in_flight, limiter.waiting) == (0, 0)
        return order

    assert asyncio.run(queue()) == list(range(20))


def test_everyone_waits_as_told() -> None:
    async def hold() -> tuple[list[float], int]:
        clock = asyncio.get_running_loop().time
        limiter = Limiter(3)
        limiter.hold(0.2)
        limiter.hold(0.1)
        started = clock()
        starts = []

        async def one() -> None:
            await limiter.acquire()
            starts.append(clock() - started)
            limiter.release()

        waiting = [asyncio.create_task(one()) for _ in range(6)]
        await asyncio.sleep(0.05)
        seen = limiter.waiting
        await asyncio.gather(*waiting)
        return starts, seen

    starts, seen = asyncio.run(hold())
    assert seen == 6
    assert min(starts) > 0.19 and max(starts) < 1.0


def test_cancelled_waiters_take_no_place() -> None:
    async def cancel() -> tuple[int, int]:
        limiter = Limiter(1)
        await limiter.acquire()
        first, second = (asyncio.create_task(limiter.acquire()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        limiter.release()
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        if second.cancelled():
            return limiter.in_flight, limiter.waiting
        limiter.release()
        return limiter.in_flight, limiter.waiting

    assert asyncio.run(cancel()) == (0, 0)


def test_a_place_given_to_a_cancelled_waiter_goes_to_the_next() -> None:
    async def cancel() -> bool:
        limiter = Limiter(1)
        await limiter.acquire()
        first, second = (asyncio.create_task(limiter.acquire()) for _ in range(2))
        await asyncio.sleep(0)
        limiter.release()
        first.cancel()
        await asyncio.wait_for(second, 1)
        return first.cancelled()

    assert asyncio.run(cancel())
