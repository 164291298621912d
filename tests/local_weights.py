"""What the tests of the embedded model share: its real weights, a cache of their own, processes that use it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from trajectile.errors import UserError
from trajectile.model.local.weights import ensure_weights

MODEL = "local/smollm2-135m"
USER = """
import asyncio, sys
from trajectile.model.local.manager import local_endpoint
async def main():
    async with local_endpoint(sys.argv[1], idle_s=float(sys.argv[2])) as endpoint:
        print(endpoint.pid, endpoint.base_url, endpoint.api_key, flush=True)
        await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""

needs_engine = pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed")


def private_cache(folder: Path) -> Path:
    """A cache folder with the real weights in it and no server; skips when they cannot be had."""
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    try:
        weights = ensure_weights(MODEL)
    except UserError as error:
        pytest.skip(str(error))
    (folder / "weights").mkdir(parents=True)
    (folder / "weights" / weights.name).symlink_to(weights)
    return folder


class Holder:
    """A process that uses the server until it is told to end."""

    def __init__(self, cache: Path, model: str = MODEL, idle_s: float = 1.0) -> None:
        scripts = Path(__file__).parents[1] / "scripts"
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, model, str(idle_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TRAJECTILE_CACHE": str(cache), "PYTHONPATH": str(scripts)},
        )
        self._answer: list[str] = []

    @property
    def server(self) -> tuple[int, str, str]:
        """The server's pid, base URL and key, once it answers."""
        if not self._answer:
            assert self.process.stdout is not None
            self._answer = self.process.stdout.readline().split()
        pid, url, key = self._answer
        return int(pid), url, key

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(timeout=30) == 0


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    status = Path(f"/proc/{pid}/status")
    if not Path("/proc/self").exists():
        return subprocess.run(["ps", "-p", str(pid)], capture_output=True, check=False).returncode == 0
    return status.exists() and "State:\tZ" not in status.read_text()


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()
