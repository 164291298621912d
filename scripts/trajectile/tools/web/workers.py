"""Processes that read pages and ask search engines in the shard's place; see worker.py."""

import asyncio
import json
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from trajectile.environment import passed

PROGRAM = Path(__file__).with_name("worker.py")
AT_ONCE = 2
GRACE_S, END_S = 5.0, 0.5
# No key is among them.
PASSED = (
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "DDGS_PROXY",
)

Answer = dict[str, Any]


class Workers:
    """Up to AT_ONCE processes, started when there is work, replaced when one breaks, ended with the shard."""

    def __init__(self) -> None:
        self._idle: list[asyncio.subprocess.Process] = []
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def ask(self, task: Answer, content: bytes = b"", *, seconds: float) -> Answer:
        """What a worker makes of a task within `seconds`; ValueError says why it makes nothing of it."""
        async with self._turn:
            process = self._living() or await _start()
            try:
                answer = await _exchange(process, {**task, "seconds": seconds}, content, seconds)
            except BaseException:
                await _end(process)
                raise
            self._idle.append(process)
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def _living(self) -> asyncio.subprocess.Process | None:
        while self._idle:
            if (process := self._idle.pop()).returncode is None:
                return process
        return None

    async def close(self) -> None:
        while self._idle:
            await _end(self._idle.pop())


class Readers(Workers):
    """Those that read pages."""


class Searchers(Workers):
    """Those that ask search engines; a slow engine holds up no page."""


async def _start() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        str(PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=passed(PASSED),
        start_new_session=True,
    )


async def _exchange(process: asyncio.subprocess.Process, task: Answer, content: bytes, seconds: float) -> Answer:
    assert process.stdin and process.stdout
    message = json.dumps(task).encode() + b"\n" + content
    try:
        async with asyncio.timeout(seconds + GRACE_S):
            process.stdin.write(struct.pack(">I", len(message)) + message)
            await process.stdin.drain()
            length = struct.unpack(">I", await process.stdout.readexactly(4))[0]
            answer: Answer = json.loads(await process.stdout.readexactly(length))
            return answer
    except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
        raise ValueError(await _what_ended(process, seconds)) from None


async def _what_ended(process: asyncio.subprocess.Process, seconds: float) -> str:
    await _end(process)
    if process.returncode in (-signal.SIGALRM, -signal.SIGKILL):
        return f"takes longer than {seconds:g} s (web_timeout)"
    return f"cannot be read: the program that reads it ended with {process.returncode}"


async def _end(process: asyncio.subprocess.Process) -> None:
    assert process.stdin
    process.stdin.close()
    with suppress(TimeoutError):
        # an idle one ends now; one that broke has ended by itself, and how it did is worth knowing
        await asyncio.wait_for(process.wait(), END_S)
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
