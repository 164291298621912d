"""Speech by espeak-ng on this machine: robotic, offline and free."""

import asyncio
import os
import tempfile
from pathlib import Path

from trajectile.tools.tool import ToolContext

PROGRAM = "espeak-ng"
FORMATS = ("wav",)
VOICE = "en"
SAID_BYTES = 300


async def speak(context: ToolContext, text: str, kind: str) -> bytes:
    """A sound file of the format `kind`; ValueError where there is none."""
    with tempfile.TemporaryDirectory(prefix="trajectile-speech-") as folder:
        file = Path(folder) / f"speech.{kind}"
        await _run(["-v", context.settings.tts_voice or VOICE, "--stdin", "-w", str(file)], text, context)
        return await asyncio.to_thread(file.read_bytes)


async def _run(arguments: list[str], text: str, context: ToolContext) -> None:
    program = await asyncio.create_subprocess_exec(
        PROGRAM,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
    )
    try:
        async with asyncio.timeout(context.settings.tts_timeout):
            _, said = await program.communicate(text.encode())
    except TimeoutError:
        raise ValueError(f"no speech within {context.settings.tts_timeout:g} s") from None
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    if program.returncode:
        raise ValueError(f"{PROGRAM} failed: {said.decode('utf-8', 'replace').strip()[:SAID_BYTES]}")
