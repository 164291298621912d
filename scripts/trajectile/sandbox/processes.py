"""Programs that this process has started, waited for without a thread."""

import asyncio
import subprocess
from contextlib import suppress

LONGEST_PAUSE_S = 0.05


async def exited(process: "subprocess.Popen[bytes]") -> None:
    pause = 0.001
    while process.poll() is None:
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)


async def end(process: "subprocess.Popen[bytes]", grace_s: float) -> None:
    """Wait for a program that is about to end; kill it where it takes longer than `grace_s`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(grace_s):
            await exited(process)
    process.kill()
    await exited(process)
