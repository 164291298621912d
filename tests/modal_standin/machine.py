"""A sandbox of the stand-in: processes that share a bubblewrap."""

import asyncio
import shlex
from pathlib import Path

from modal_proto import api_pb2
from trajectile.sandbox.base import OutputBuffer
from trajectile.sandbox.local.sandbox import LocalSandbox

CHUNK_BYTES = 1 << 16


class Output(OutputBuffer):
    """What a process has printed so far, for any number of readers."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.changed = asyncio.Event()

    def feed(self, chunk: bytes) -> None:
        self.data += chunk
        self.changed.set()

    def value(self) -> bytes:
        return bytes(self.data)


class Exec:
    """A running process; `code` comes true at its end."""

    def __init__(self) -> None:
        self.output = Output()
        self.stdin: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.written = 0
        self.code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run(self, sandbox: LocalSandbox, arguments: "list[str]") -> None:
        try:
            script = f"exec {shlex.join(arguments)}"
            result = await sandbox.run_script(script, timeout_s=None, output=self.output, stdin=self.stdin)
            self.code.set_result(result.exit_code)
        except Exception:
            self.code.set_result(137)
        self.output.changed.set()


class Machine:
    """A sandbox: what it was made of, what runs in it, and how it ended (None while it runs)."""

    def __init__(self, parent: Path, request: api_pb2.SandboxCreateV2Request) -> None:
        self.request = request
        self.tags = {tag.tag_name: tag.tag_value for tag in request.tags}
        self.result: int | None = None
        self.execs: dict[str, Exec] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sandbox = LocalSandbox(parent, "bwrap", output_limit=1000)

    async def start(self, image: str) -> None:
        await self._sandbox.start()
        await self._sandbox.write_file("image", image.encode())

    def exec(self, exec_id: str, arguments: "list[str]") -> None:
        self.execs[exec_id] = running = Exec()
        task = asyncio.create_task(running.run(self._sandbox, arguments))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self, code: int) -> None:
        if self.result is None:
            self.result = code
            await self._sandbox.close()
