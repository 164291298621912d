"""What SIGTERM and Ctrl-C do to a shard: stop it in order, or nothing once its batch is written."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopping_on_signals() -> Iterator[list[int]]:
    """Cancel the current task at the first signal; the list then holds its number."""
    loop, task, caught = asyncio.get_running_loop(), asyncio.current_task(), list[int]()

    def stop(number: int) -> None:
        if not caught and task:
            caught.append(number)
            task.cancel()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop, number)
    yield caught


def ignore_signals() -> None:
    """From the batch file's rename to the end of the process, the shard is done whatever comes."""
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)
