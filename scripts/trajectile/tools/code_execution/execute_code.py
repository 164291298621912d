"""Tool `execute_code`."""

import asyncio
import secrets
import shlex
from pathlib import Path
from typing import Any

import orjson

from trajectile.sandbox.base import ExecResult
from trajectile.sandbox.output import to_text
from trajectile.tools import calling
from trajectile.tools.code_execution.channel import Channel
from trajectile.tools.code_execution.runner import MODULE
from trajectile.tools.tool import Arguments, Tool, ToolContext, as_json, error, is_failure, parameters

NAME = "execute_code"
RUNNER = Path(__file__).with_name("runner.py")
NOT_FOUND = 127


async def execute_code(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with output, exit_code and tool_calls, and with error where the deadline ended the script."""
    limit_s = context.settings.code_timeout
    script = Script(context, arguments["code"])
    result = await script.run(min(limit_s, float(arguments.get("timeout", limit_s))))
    if not script.channel.started and result.exit_code == NOT_FOUND:
        return error("there is no python3 in this sandbox's image, so execute_code cannot work here")
    answer = {"output": to_text(result.output), "exit_code": result.exit_code, "tool_calls": script.calls}
    if result.timed_out:
        answer["error"] = "timed out, killed with all it had started"
    return as_json(**answer)


class Script:
    """A script in the sandbox and the calls that it has made."""

    def __init__(self, context: ToolContext, code: str) -> None:
        self.calls = 0
        self._context = context
        self._tools = {name: tool for name, tool in context.tools.items() if name != NAME}
        self._stdin: asyncio.Queue[bytes | None] = asyncio.Queue()
        token = secrets.token_hex(16)
        self.channel = Channel(token, context.settings.output_limit)
        names = {name: list(tool.parameters.get("properties", {})) for name, tool in self._tools.items()}
        self._send(token=token, code=code, tools=names)

    def _send(self, **line: Any) -> None:
        self._stdin.put_nowait(orjson.dumps(line) + b"\n")

    async def run(self, timeout_s: float) -> ExecResult:
        """Run it to its end or deadline, calls of tools included; what a tool raises ends it too."""
        command = f"exec python3 -u -c {shlex.quote(RUNNER.read_text(encoding='utf-8'))}"
        running = asyncio.ensure_future(
            self._context.sandbox.exec(
                command, timeout_s=timeout_s, output=self.channel, stdin=self._stdin, persist=False
            )
        )
        serving = asyncio.ensure_future(self._serve())
        try:
            await asyncio.wait([running, serving], return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            return await running
        finally:
            for task in (running, serving):
                task.cancel()
            await asyncio.wait([running, serving])

    async def _serve(self) -> None:
        while True:
            request = await self.channel.requests.get()
            self._send(**await self._answer(request))

    async def _answer(self, request: dict[str, Any]) -> dict[str, str]:
        """What the script gets for a call: the tool's result, or why there is none."""
        if "refused" in request:
            return {"refused": str(request["refused"])}
        name, arguments = str(request["tool"]), request.get("arguments")
        most = self._context.settings.code_max_calls
        if name not in self._tools or not isinstance(arguments, dict):
            return {"refused": f"there is no tool {name!r} for scripts"}
        if self.calls == most:
            return {"refused": f"a script may call tools {most} times"}
        self.calls += 1
        succeeds = False
        try:
            result = await calling.call(self._tools[name], self._context, arguments)
            succeeds = not is_failure(result)
        finally:
            self._context.inner_calls.append((name, succeeds))
        return {"result": result}


TOOL = Tool(
    NAME,
    "code_execution",
    "Run a Python script. Your other tools are functions in it, with their parameters as keyword arguments: "
    f"`from {MODULE} import <tool>`. A function returns the tool's result, as dict or list where that is JSON. Only "
    "what the script prints comes back to you, so use it to work through many results at once.",
    parameters(
        ["code"],
        code={"type": "string"},
        timeout={"type": "number", "exclusiveMinimum": 0, "description": "seconds"},
    ),
    execute_code,
)
