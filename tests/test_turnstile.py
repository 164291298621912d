import asyncio

from trajectile.model.turnstile import Turnstile


async def enter_all(turnstile: Turnstile, count: int, cancelled: frozenset[int] = frozenset()) -> list[tuple[int, int]]:
    """Return who came through in which turn of the loop, all having come at once."""
    passed: list[tuple[int, int]] = []
    turn = 0

    async def one(number: int) -> None:
        await turnstile.enter()
        passed.append((number, turn))

    tasks = [asyncio.create_task(one(number)) for number in range(count)]
    for turn in range(3 * count):
        await asyncio.sleep(0)
        for number in cancelled if turn == 1 else ():
            tasks[number].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return passed


def test_one_a_turn_in_the_order_of_coming() -> None:
    passed = asyncio.run(enter_all(Turnstile(), 5))
    assert [number for number, _ in passed] == [0, 1, 2, 3, 4]
    assert len({turn for _, turn in passed}) == 5


def test_those_that_gave_up_hold_nobody_up() -> None:
    passed = asyncio.run(enter_all(Turnstile(), 6, frozenset({2, 3})))
    assert [number for number, _ in passed] == [0, 1, 4, 5]


def test_open_again_when_nobody_waits() -> None:
    async def later() -> list[tuple[int, int]]:
        turnstile = Turnstile()
        await enter_all(turnstile, 3)
        return await enter_all(turnstile, 2)

    assert [number for number, _ in asyncio.run(later())] == [0, 1]
