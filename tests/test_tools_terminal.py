"""Tools terminal and process, in a real sandbox."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tool_contexts import tool_context
from trajectile.sandbox.base import SandboxDied
from trajectile.sandbox.local.sandbox import LocalSandbox
from trajectile.tools.calling import call
from trajectile.tools.registry import TOOLSETS
from trajectile.tools.tool import ToolContext, is_failure

TOOLS = {tool.name: tool for tool in TOOLSETS["terminal"]}
Test = Callable[[ToolContext], Coroutine[Any, Any, None]]


def within(parent: Path, test: Test, *, timeout_s: float = 30, output_limit: int = 20_000) -> None:
    async def run() -> None:
        sandbox = LocalSandbox(parent, "auto", output_limit=output_limit)
        await sandbox.start()
        context = tool_context(sandbox, timeout_s, output_limit)
        try:
            await test(context)
        finally:
            await context.close()
            await sandbox.close()

    asyncio.run(run())


async def terminal(context: ToolContext, command: str, **arguments: Any) -> dict[str, Any]:
    answer = json.loads(await call(TOOLS["terminal"], context, {"command": command, **arguments}))
    assert isinstance(answer, dict)
    return answer


async def process(context: ToolContext, action: str, session_id: str | None = None, **more: Any) -> dict[str, Any]:
    arguments = {"action": action, "session_id": session_id, **more}
    answer = json.loads(await call(TOOLS["process"], context, arguments))
    assert isinstance(answer, dict)
    return answer


def test_output_exit_code_and_what_lasts(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        command = "mkdir d; cd d; export A=1; echo out; echo err >&2; exit 7"
        assert await terminal(context, command) == {"output": "out\nerr\n", "exit_code": 7}
        assert await terminal(context, "echo $A ${PWD##*/}") == {"output": "1 d\n", "exit_code": 0}
        there = await terminal(context, "echo ${PWD##*/}; export A=2", workdir="..")
        assert there["output"] != "d\n"
        assert (await terminal(context, "echo $A ${PWD##*/}"))["output"] == "1 d\n"
        assert (await terminal(context, "echo no", workdir="nowhere"))["exit_code"] == 1

    within(tmp_path, test)


def test_deadline_keeps_partial_output_and_is_a_failure(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        raw = await call(TOOLS["terminal"], context, {"command": "echo part; sleep 60", "timeout": 0.5})
        assert is_failure(raw)
        assert json.loads(raw)["output"] == "part\n"
        assert "timed out after 0.5 s" in json.loads(raw)["error"]
        # The user's limit stands above what the model asks for.
        assert "timed out after 1 s" in (await terminal(context, "sleep 60", timeout=9999))["error"]

    within(tmp_path, test, timeout_s=1)


def test_any_output_is_valid_text_on_one_line(tmp_path: Path) -> None:
    """I9, and bytes that are no text."""

    async def test(context: ToolContext) -> None:
        command = r"printf '\xe2\x80\xa8\xe2\x80\xa9\xc2\x85 \xff\xed\xa0\x80 \x00 \x1b[1mbold\x1b[0m'"
        raw = await call(TOOLS["terminal"], context, {"command": command})
        assert json.loads(raw)["output"] == "\u2028\u2029\u0085 \ufffd\ufffd\ufffd\ufffd \ufffd bold"
        assert "\n" not in raw
        assert raw.encode("utf-8")

    within(tmp_path, test)


def test_impossible_commands_are_error_results(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        for command in ("a\0b", "echo \ud800"):
            assert "error" in await terminal(context, command)
        assert (await terminal(context, "if"))["exit_code"] == 2

    within(tmp_path, test)


def test_background_process_from_start_to_end(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        await terminal(context, "export A=1; mkdir d; cd d")
        script = 'echo "ready $A ${PWD##*/}"; while read line; do echo "got $line"; cd /; done; exit 5'
        started = await terminal(context, script, background=True)
        session = started["session_id"]
        assert (await process(context, "wait", session, timeout=0.5))["output"] == "ready 1 d\n"
        assert await process(context, "write", session, data="one\n") == {"status": "running"}
        await asyncio.sleep(0.3)
        assert await process(context, "poll", session) == {"output": "got one\n", "status": "running"}
        assert await process(context, "poll", session) == {"output": "", "status": "running"}
        assert (await process(context, "log", session))["output"] == "ready 1 d\ngot one\n"
        assert (await terminal(context, "echo ${PWD##*/}"))["output"] == "d\n"
        listed = (await process(context, "list"))["processes"]
        assert listed == [{"session_id": session, "command": script, "status": "running"}]
        assert (await process(context, "kill", session))["status"] == "killed"
        assert "ended" in (await process(context, "write", session, data="x"))["error"]

    within(tmp_path, test)


def test_wait_tells_the_exit_code(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        session = (await terminal(context, "sleep 0.2; echo end; exit 5", background=True))["session_id"]
        answer = await process(context, "wait", session)
        assert answer == {"output": "end\n", "status": "exited", "exit_code": 5}

    within(tmp_path, test)


def test_process_asks_for_what_it_needs(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        assert await process(context, "list") == {"processes": []}
        assert "needs a session_id" in (await process(context, "poll"))["error"]
        assert "there are: none" in (await process(context, "poll", "bg9"))["error"]
        session = (await terminal(context, "sleep 60", background=True))["session_id"]
        assert "there are: bg1" in (await process(context, "poll", "bg9"))["error"]
        assert "needs data" in (await process(context, "write", session))["error"]

    within(tmp_path, test)


def test_closing_the_context_ends_background_processes(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        await terminal(context, "sleep 4321", background=True)
        await terminal(context, "sleep 4321", background=True)
        await context.close()
        assert (await terminal(context, "pgrep -cx sleep"))["output"] in ("0\n", "")

    within(tmp_path, test)


def test_dead_sandbox_is_no_result(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        session = (await terminal(context, "sleep 60", background=True))["session_id"]
        await context.sandbox.close()
        for name, arguments in (
            ("terminal", {"command": "true"}),
            ("process", {"action": "wait", "session_id": session}),
        ):
            with pytest.raises(SandboxDied):
                await call(TOOLS[name], context, arguments)

    within(tmp_path, test)
