"""execute_code and todo: what scripts print and call, limits, failures."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import Job
from sandbox_contract.subjects import gone
from scripted_server.fixture import ScriptedServer
from tool_contexts import tool_context
from trajectile.sandbox.local.sandbox import LocalSandbox
from trajectile.tools.calling import call
from trajectile.tools.code_execution.channel import Channel
from trajectile.tools.registry import TOOLSETS
from trajectile.tools.tool import ToolContext

TOOLS = {tool.name: tool for name in ("terminal", "file", "code_execution", "todo") for tool in TOOLSETS[name]}
Run = Callable[..., Awaitable[dict[str, Any]]]


def in_sandbox(folder: Path, test: Callable[[ToolContext, Run], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        sandbox = LocalSandbox(folder, "auto", output_limit=2000)
        await sandbox.start()
        context = tool_context(sandbox, 20, 2000, TOOLS, **settings)

        async def execute(code: str, **arguments: Any) -> dict[str, Any]:
            answer: dict[str, Any] = json.loads(await call(TOOLS["execute_code"], context, {"code": code, **arguments}))
            return answer

        try:
            await test(context, execute)
        finally:
            await context.close()
            await sandbox.close()

    asyncio.run(run())


def test_what_a_script_prints_and_how_it_ends(tmp_path: Path) -> None:
    async def test(context: ToolContext, run: Run) -> None:
        await call(
            TOOLS["terminal"], context, {"command": "export A=1; mkdir d; cd d; echo 'x = 5' | tee own.py >json.py"}
        )
        shown = await run("import os, own\nprint(os.environ['A'], os.getcwd()[-2:], own.x)\nos.system('echo sub')")
        assert shown == {"output": "1 /d 5\nsub\n", "exit_code": 0, "tool_calls": 0}
        failed = await run("def f():\n    return 1 / 0\nf()")
        assert failed["exit_code"] == 1 and "error" not in failed
        assert failed["output"].startswith('Traceback (most recent call last):\n  File "<script>", line 3, in <module>')
        assert failed["output"].endswith("ZeroDivisionError: division by zero\n")
        assert "SyntaxError" in (await run("x = ("))["output"]
        assert (await run("import sys; sys.exit(7)"))["exit_code"] == 7
        assert "EOFError" in (await run("print(input())"))["output"], "answers to calls are not the script's input"
        long = (await run("print('é' * 100_000)"))["output"]
        assert len(long.encode()) < 2100 and "bytes cut" in long

    in_sandbox(tmp_path, test)


def test_a_script_calls_tools_and_their_calls_are_counted(tmp_path: Path) -> None:
    async def test(context: ToolContext, run: Run) -> None:
        code = "from agent_tools import *\n"
        code += "print(write_file('a', 'é\\n' * 200_000)); print(terminal(command='wc -c <a; exit 3'))\n"
        code += "print(read_file('a', limit=1).split('\\n')[0]); print(terminal(cmd=1)['error'][:15])\n"
        code += "print(todo()['todos'])"
        answer = await run(code)
        assert answer["output"].split("\n") == [
            "Wrote 600000 bytes to a",
            "{'output': '600000\\n', 'exit_code': 3}",
            "1|é",
            "Wrong arguments",
            "[]",
            "",
        ]
        assert answer["tool_calls"] == 5
        expected = [("write_file", True), ("terminal", True), ("read_file", True), ("terminal", False), ("todo", True)]
        assert context.inner_calls == expected
        several = "import threading, agent_tools\ndef f(): print(agent_tools.terminal('echo x')['output'].strip())\n"
        several += "all = [threading.Thread(target=f) for _ in range(3)]\n[t.start() for t in all]"
        assert (await run(several))["output"].split() == ["x"] * 3

    in_sandbox(tmp_path, test)


def test_limits_of_a_script(tmp_path: Path) -> None:
    async def test(context: ToolContext, run: Run) -> None:
        many = await run("import agent_tools\nfor i in range(5): print(i, len(agent_tools.todo()['todos']))")
        assert many["output"].startswith("0 0\n1 0\nTraceback") and many["tool_calls"] == 2
        assert "RuntimeError: a script may call tools 2 times" in many["output"]
        itself = await run("from agent_tools import execute_code")
        assert "cannot import name 'execute_code'" in itself["output"]
        sleeping = "import subprocess, time\nsubprocess.Popen(['sleep', '3177'])\nprint('a')\ntime.sleep(60)"
        late = await run(sleeping, timeout=3)
        assert late["output"] == "a\n" and late["error"] == "timed out, killed with all it had started"
        assert gone("sleep\x003177"), "the deadline ends all that the script started"
        in_call = await run("from agent_tools import terminal\nterminal('sleep 3178')", timeout=3)
        assert in_call["error"] and gone("3178"), "also what a tool is doing for it"
        assert context.inner_calls[-1] == ("terminal", False)
        assert (await run("print(1)"))["output"] == "1\n", "the next one works"
        assert "Wrong arguments for execute_code" in (await run("1", timeout=0))["error"]

    in_sandbox(tmp_path, test, code_max_calls=2, code_timeout=30)


def test_what_cannot_be_called_is_refused_once_and_the_next_call_gets_its_own_answer(tmp_path: Path) -> None:
    code = """
import agent_tools, multiprocessing
def tried(*arguments):
    try:
        print(agent_tools.write_file(*arguments))
    except RuntimeError as problem:
        print(problem)
tried("a", "x" * (33 << 20))
tried("a", float("nan"))
tried("a", "x")
fork = multiprocessing.get_context("fork").Process(target=tried, args=("b", "y"))
fork.start()
fork.join()
tried("c", "zz")
"""

    async def test(context: ToolContext, run: Run) -> None:
        large, odd, first, forked, last = (await run(code))["output"].splitlines()
        assert "may have 16 MB" in large and "must be JSON: NaN" in odd
        assert "let forks return what they have to the script" in forked
        assert [first, last] == ["Wrote 1 bytes to a", "Wrote 2 bytes to c"]

    in_sandbox(tmp_path, test)


def test_the_time_limit_of_the_settings_holds(tmp_path: Path) -> None:
    async def test(context: ToolContext, run: Run) -> None:
        assert "timed out" in (await run("import time; time.sleep(60)", timeout=100))["error"]

    in_sandbox(tmp_path, test, code_timeout=1)


def test_frames_are_told_from_what_is_printed_however_they_are_cut() -> None:
    stream = b"a\0b\0tok" + b'x\0token+{"tool": "t", \n' + b'c\0token."arguments": {}}\nd\0token.[1\n\0e'
    for size in (1, 3, len(stream)):
        channel = Channel("token", 1000)
        for at in range(0, len(stream), size):
            channel.feed(stream[at : at + size])
        assert channel.value() == b"a\0b\0tokxcd\0e"
        assert channel.requests.get_nowait()["tool"] == "t"
        assert "must be JSON" in channel.requests.get_nowait()["refused"] and channel.requests.empty()


def test_todo_keeps_a_list_for_the_prompt(tmp_path: Path) -> None:
    def item(name: str, status: str = "pending", content: str = "do") -> dict[str, str]:
        return {"id": name, "content": content, "status": status}

    async def test(context: ToolContext, run: Run) -> None:
        async def todo(**arguments: Any) -> Any:
            return json.loads(await call(TOOLS["todo"], context, arguments))

        assert (await todo())["todos"] == []
        made = await todo(todos=[item("1"), item("2"), item("2", content="again")])
        assert made["todos"] == [item("1"), item("2", content="again")]
        merged = await todo(todos=[item("3", "in_progress"), item("1", "completed")], merge=True)
        assert [(each["id"], each["status"]) for each in merged["todos"]] == [
            ("1", "completed"),
            ("2", "pending"),
            ("3", "in_progress"),
        ]
        assert merged["summary"] == {"total": 3, "pending": 1, "in_progress": 1, "completed": 1, "cancelled": 0}
        assert await todo() == merged
        assert "'done' is not one of" in (await todo(todos=[item("1", "done")]))["error"]
        assert "'content' is a required property" in (await todo(todos=[{"id": "1", "status": "pending"}]))["error"]
        assert "it may have 100" in (await todo(todos=[item(str(n)) for n in range(101)]))["error"]
        assert await todo() == merged, "what was refused changed nothing"
        assert (await todo(todos=[]))["todos"] == []

    in_sandbox(tmp_path, test)


@pytest.fixture(scope="module")
def server() -> Any:
    with ScriptedServer() as running:
        yield running


def test_rows_count_the_calls_of_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ScriptedServer
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.yaml").write_text("d:\n  terminal: 100\n  code_execution: 100\n")
    job = Job(tmp_path, server, ["a"], distributions_file="d.yaml", distribution="d")
    code = "from agent_tools import terminal\nfor a in ('echo', 'cat'): terminal(a)\nterminal(x=1)"
    reply = {"tool_calls": [{"name": "execute_code", "arguments": {"code": code}}]}
    job.script({"match": "a", "replies": [reply, {"text": "done"}]})
    assert job.here() == 0
    job.release()
    [row] = job.rows()
    stats = {name: (stat.count, stat.success, stat.failure) for name, stat in row.tool_stats.items()}
    assert stats == {"execute_code": (1, 1, 0), "process": (0, 0, 0), "terminal": (3, 2, 1)}
    assert row.tool_error_counts["terminal"] == 1
