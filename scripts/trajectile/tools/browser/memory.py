"""Ends the processes of pages that take too much memory: a limit of the script engine does not count what it draws."""

import asyncio
import logging

WATCH_S = 1.0
UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
PAGE = "--type=renderer"
log = logging.getLogger(__name__)


def size(text: str) -> int:
    """The bytes of a setting such as 512m."""
    return int(text[:-1]) * UNITS[text[-1].lower()]


async def watch_memory(limit_bytes: int) -> None:
    """Look at all pages of this process's browsers from time to time, until cancelled."""
    while True:
        await asyncio.sleep(WATCH_S)
        for pid, taken in await asyncio.to_thread(end_large_pages, limit_bytes):
            log.warning("ended a page of the browser (process %d), which took %d MB of memory", pid, taken >> 20)


def end_large_pages(limit_bytes: int) -> list[tuple[int, int]]:
    """End the processes of pages that take more, and return them with the bytes that were theirs alone."""
    import psutil

    ended = []
    for process in psutil.Process().children(recursive=True):
        try:
            memory = process.memory_info()
            taken = memory.rss - getattr(memory, "shared", 0)
            if taken > limit_bytes and PAGE in process.cmdline():
                process.kill()
                ended.append((process.pid, taken))
        except psutil.Error:
            continue
    return ended
