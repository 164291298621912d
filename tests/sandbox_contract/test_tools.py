"""Tools work through every sandbox."""

import asyncio
import json
import os
from typing import Any

from container_images import host_python
from tool_contexts import tool_context
from trajectile.sandbox.base import Sandbox
from trajectile.tools.calling import call
from trajectile.tools.registry import TOOLSETS
from trajectile.tools.tool import ToolContext

from sandbox_contract.subjects import Subject, gone

TOOLS = {tool.name: tool for tools in TOOLSETS.values() for tool in tools}


async def use(context: ToolContext, name: str, **arguments: Any) -> str:
    return await call(TOOLS[name], context, arguments)


def test_a_background_process_from_start_to_end(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        context = tool_context(sandbox, 60, 20_000)
        await use(context, "terminal", command="export A=1; mkdir d; cd d")
        script = 'echo "ready $A ${PWD##*/}"; while read line; do echo "got $line"; cd /; done; exit 5'
        session = json.loads(await use(context, "terminal", command=script, background=True))["session_id"]
        waited = await use(context, "process", action="wait", session_id=session, timeout=3)
        assert json.loads(waited)["output"] == "ready 1 d\n"
        await use(context, "process", action="write", session_id=session, data="one\n")
        await asyncio.sleep(1)
        polled = json.loads(await use(context, "process", action="poll", session_id=session))
        assert polled == {"output": "got one\n", "status": "running"}
        logged = json.loads(await use(context, "process", action="log", session_id=session))
        assert logged["output"] == "ready 1 d\ngot one\n"
        killed = json.loads(await use(context, "process", action="kill", session_id=session))
        assert killed["status"] == "killed"
        ended = json.loads(await use(context, "terminal", command="exit 5", background=True))["session_id"]
        assert json.loads(await use(context, "process", action="wait", session_id=ended))["exit_code"] == 5
        await context.close()

    subject.run(test)


def test_file_tools(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        context = tool_context(sandbox, 60, 20_000)
        assert "Wrote" in await use(context, "write_file", path="a/b.txt", content="one\ntwo\nthree\n")
        assert await use(context, "read_file", path="a/b.txt", offset=2, limit=1) == (
            "2|two\n[lines 2-2 of 3; go on with offset=3]"
        )
        assert "+TWO" in await use(context, "patch", path="a/b.txt", old_string="two", new_string="TWO")
        assert await use(context, "search_files", pattern="T[WV]O", path="a") == "a/b.txt:2:TWO"
        assert await use(context, "search_files", pattern="*.txt", target="files") == "a/b.txt"
        assert "No such file" in json.loads(await use(context, "read_file", path="none"))["error"]
        timed_out = json.loads(await use(context, "terminal", command="echo part; sleep 60", timeout=1))
        assert timed_out["output"] == "part\n" and "timed out after 1 s" in timed_out["error"]

    subject.run(test)


def test_scripts_call_tools(subject: Subject) -> None:
    # What stands in for Modal sees this machine's programs.
    mounts = host_python.mounts() if subject.in_container and subject.name != "modal" else ""

    async def test(sandbox: Sandbox) -> None:
        context = tool_context(sandbox, 60, 20_000, TOOLS)
        if mounts:
            missing = json.loads(await use(context, "execute_code", code="print(1)"))
            assert missing["error"] == "there is no python3 in this sandbox's image, so execute_code cannot work here"
            await use(context, "terminal", command=host_python.FIND)
        code = "from agent_tools import *\nprint(write_file('a', 'é' * 50_000))\nprint(terminal('wc -c <a; exit 3'))"
        done = json.loads(await use(context, "execute_code", code=code))
        assert done == {
            "output": "Wrote 100000 bytes to a\n{'output': '100000\\n', 'exit_code': 3}\n",
            "exit_code": 0,
            "tool_calls": 2,
        }
        mark = f"38{os.getpid()}"
        late = f"import subprocess, time\nsubprocess.Popen(['sleep', '{mark}'])\nprint('a', flush=True)\ntime.sleep(60)"
        ended = json.loads(await use(context, "execute_code", code=late, timeout=4))
        assert ended["output"] == "a\n" and "timed out" in ended["error"] and gone(f"sleep\x00{mark}")
        await context.close()

    subject.run(test, sandbox_mounts=mounts)
