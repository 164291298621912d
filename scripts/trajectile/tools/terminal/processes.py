"""A prompt's background commands."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from trajectile.sandbox.base import ExecResult, OutputBuffer
from trajectile.sandbox.output import HeadTail, to_text
from trajectile.tools.tool import ToolContext, as_json, error

ACTIONS = ("list", "poll", "log", "wait", "kill", "write")


class Log(OutputBuffer):
    """All of a command's output, and what is new since it was last looked at, each bounded."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._all, self._new = HeadTail(limit_bytes), HeadTail(limit_bytes)

    def feed(self, chunk: bytes) -> None:
        self._all.feed(chunk)
        self._new.feed(chunk)

    def value(self) -> bytes:
        return self._all.value()

    def take_new(self) -> bytes:
        new, self._new = self._new, HeadTail(self._limit)
        return new.value()


@dataclass
class Process:
    """A command that runs beside the conversation."""

    command: str
    task: "asyncio.Task[ExecResult]"
    log: Log
    stdin: "asyncio.Queue[bytes | None]"
    killed: bool = False

    def status(self) -> dict[str, Any]:
        if not self.task.done():
            return {"status": "running"}
        if self.killed:
            return {"status": "killed"}
        return {"status": "exited", "exit_code": self.task.result().exit_code}


@dataclass
class Processes:
    """Background commands by session id; all of them end with the prompt."""

    by_id: dict[str, Process] = field(default_factory=dict)

    def begin(self, context: ToolContext, shown: str, command: str) -> str:
        log, stdin = Log(context.settings.output_limit), asyncio.Queue[bytes | None]()
        run = context.sandbox.exec(command, timeout_s=None, output=log, stdin=stdin, persist=False)
        session = f"bg{len(self.by_id) + 1}"
        self.by_id[session] = Process(shown, asyncio.ensure_future(run), log, stdin)
        return session

    def all(self) -> list[dict[str, Any]]:
        return [{"session_id": key, "command": each.command, **each.status()} for key, each in self.by_id.items()]

    async def act(self, action: str, session: str, data: str | None, timeout_s: float) -> str:
        """Do one of ACTIONS but list. SandboxDied where the sandbox went while the command ran."""
        process = self.by_id[session]
        if action == "write":
            return self._write(process, data)
        if action == "kill" and not process.task.done():
            process.killed = True
            await _cancel(process.task)
        if action == "wait":
            await asyncio.wait([process.task], timeout=timeout_s)
        output = process.log.value() if action == "log" else process.log.take_new()
        return as_json(output=to_text(output), **process.status())

    def _write(self, process: Process, data: str | None) -> str:
        if data is None:
            return error("write needs data")
        if process.task.done():
            return error("the process has ended")
        process.stdin.put_nowait(data.encode("utf-8"))
        return as_json(**process.status())

    async def close(self) -> None:
        for process in self.by_id.values():
            await _cancel(process.task)


async def _cancel(task: "asyncio.Task[ExecResult]") -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # seen: not worth a warning
