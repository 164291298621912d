"""MCP servers: on the host, in the sandbox and over HTTP, well and badly behaved, and what a run keeps of them."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from helpers import Job, wait_until
from sandbox_contract.subjects import gone, running
from scripted_server.fixture import ScriptedServer
from tool_contexts import tool_context
from trajectile.configuration.settings import load_settings
from trajectile.errors import PromptError, UserError
from trajectile.planning.preparation import prepare_run
from trajectile.sandbox.local.sandbox import LocalSandbox
from trajectile.tools.browser.running import start
from trajectile.tools.calling import call
from trajectile.tools.mcp.asking import ask_for_tools
from trajectile.tools.mcp.lines import Lines, Said
from trajectile.tools.mcp.offered import offered_name
from trajectile.tools.mcp.servers import read_servers
from trajectile.tools.mcp.toolset import server_tools
from trajectile.tools.registry import load_toolsets
from trajectile.tools.tool import ToolContext, is_failure

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="needs the extra `mcp`")
SERVERS = Path(__file__).parent / "mcp_servers"
SOURCE = (SERVERS / "plain.py").read_text()
CANARY = "canary-7c1f"
Use = Callable[..., Awaitable[str]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKEN", CANARY)
    return tmp_path


def plain(mode: str = "", **keys: Any) -> dict[str, Any]:
    return {"command": "python3", "args": ["-c", SOURCE, mode], **keys}


def write(**servers: Any) -> str:
    Path("servers.json").write_text(json.dumps({"mcpServers": servers}))
    return "servers.json"


def with_server(
    entry: dict[str, Any], test: Callable[[ToolContext, Use], Awaitable[None]], timeout_s: float = 20
) -> None:
    """Run a test with a sandbox and the tools of one server, asked for as a start does; nothing of it may be left."""

    async def run() -> None:
        file = write(s=entry)
        sandbox = LocalSandbox(Path("scratch"), "auto", output_limit=20_000)
        await sandbox.start()
        inside = sandbox if entry.get("where") == "sandbox" else None
        offered = await ask_for_tools(read_servers(file)["s"], inside, 20)
        assert not isinstance(offered, str), offered
        tools = {tool.name: tool for tool in server_tools("s", offered)}
        context = tool_context(sandbox, 20, 2000, tools, mcp_servers=file, mcp_timeout=timeout_s)

        async def use(tool: str, /, **arguments: Any) -> str:
            return await call(tools[f"mcp_s_{tool}"], context, arguments)

        try:
            await test(context, use)
        finally:
            await context.close()
            await context.shared.close()
            await sandbox.close()

    asyncio.run(run())
    assert gone("An MCP server over standard input"), "no process is left behind"


@pytest.mark.parametrize("where", ["host", "sandbox"])
def test_a_server_over_its_standard_streams(where: str) -> None:
    async def test(context: ToolContext, use: Use) -> None:
        assert await use("echo", text="é\n") == "é\n"
        assert "Wrong arguments for mcp_s_echo: 'text' is a required property" in await use("echo")
        assert await use("dotted_name", text="x") == "x", "a pattern that is none in Python is for the server to check"
        assert await use("image") == "[image, image/png, 5 bytes]"
        assert await use("resource") == "[resource file:///a]\ninside"
        assert await use("blob") == "[resource file:///b, of an unknown kind, 5 bytes]"
        assert await use("link") == "[resource file:///c: a file]"
        assert await use("empty") == "[no content]"
        assert await use("structured") == '{"a":1}'
        assert await use("fail") == '{"error": "it went wrong"}'
        big = await use("big", bytes=1_000_000)
        assert len(big.encode()) < 2100 and "bytes cut" in big
        assert await use("noise") == "done", "what is no message does not disturb"
        assert "validation error" in json.loads(await use("nonsense"))["error"]
        await use("child")
        died = json.loads(await use("die"))["error"]
        assert died == "the connection to the MCP server s ended: Connection closed; the next call makes a new one"
        assert await use("echo", text="again") == "again"

    with_server(plain(where=where), test)
    assert gone("sleep\x004177"), "what a server started ends with it"


@pytest.mark.parametrize("where", ["host", "sandbox"])
def test_a_server_that_gives_no_answer(where: str) -> None:
    async def test(context: ToolContext, use: Use) -> None:
        assert json.loads(await use("slow"))["error"] == "the MCP server s gave no answer for 3 s"
        prompt = asyncio.ensure_future(use("slow"))
        await asyncio.sleep(0.2)
        prompt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await prompt

    with_server(plain(where=where), test, timeout_s=3)


def test_a_server_on_the_host_gets_its_own_variables_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAJECTILE_API_KEY", "right")

    async def test(context: ToolContext, use: Use) -> None:
        assert await use("env", name="TRAJECTILE_API_KEY") == "unset"
        assert await use("env", name="MINE") == "a [hidden]", "what a placeholder stands for reaches no conversation"

    with_server(plain(env={"MINE": "a ${TOKEN}"}), test)


def test_what_is_usual_or_short_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUG", "1")

    async def test(context: ToolContext, use: Use) -> None:
        assert await use("echo", text=f"10:12 {os.environ['HOME']}") == f"10:12 {os.environ['HOME']}"

    with_server(plain(env={"DEBUG": "${DEBUG}", "CACHE": "${HOME}", "MINE": "${TOKEN}"}), test)


def test_a_server_that_starts_beside_a_browser_does_not_get_its_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("playwright")
    driver = folder / "driver"
    driver.write_text("#!/bin/sh\ntouch begun\nexec sleep 1\n")
    driver.chmod(0o755)
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", str(driver))
    before = os.environ.get("TMPDIR", "unset")

    async def test(context: ToolContext, use: Use) -> None:
        browser = asyncio.ensure_future(start(context.settings))
        while not (folder / "begun").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert os.environ["TMPDIR"] != before, "the driver's"
        assert await use("env", name="TMPDIR") == before
        with pytest.raises(PromptError, match="the browser does not start"):
            await browser
        assert os.environ.get("TMPDIR", "unset") == before

    with_server(plain(), test)


def test_a_line_without_an_end_is_kept_no_longer_than_any_message() -> None:
    class Stream:
        closed = False

        def close(self) -> None:
            self.closed = True

    lines = Lines(stream := Stream(), Said())
    for _ in range(40):
        lines.feed(b"x" * (1 << 20))
    assert stream.closed and lines.value() == b""


@contextmanager
def over_http(port: int) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, str(SERVERS / "over_http.py"), str(port)], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, "an MCP server over HTTP")
        yield
    finally:
        process.kill()
        process.wait()


def test_a_server_over_http() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def test(context: ToolContext, use: Use) -> None:
        assert await asyncio.gather(*(use("add", a=n, b=1) for n in range(5))) == ["1", "2", "3", "4", "5"]
        assert await use("authorization") == "Bearer [hidden]"
        assert is_failure(await use("fail"))
        assert "no answer for 10 s" in await use("slow")
        assert "the connection to the MCP server s ended" in await use("die")
        with pytest.raises(PromptError, match="MCP server s: All connection attempts failed"):
            await use("add", a=1, b=1)
        with over_http(port):
            assert await use("add", a=1, b=1) == "2"

    entry = {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    with over_http(port):
        with_server(entry, test, timeout_s=10)


REFUSED_SERVERS = [
    ("bad_schema", "MCP server s: tool 'odd': the schema of its arguments is wrong at properties/text/type"),
    ("lost_reference", r"MCP server s: tool 'odd': the schema of its arguments refers to '#/\$defs/gone'"),
    ("equal_names", "MCP server s: its tools 'dotted.name' and 'dotted_name' would both be called mcp_s_dotted_name"),
    ("no_tools", "MCP server s: it offers no tools"),
    ("crash", r"MCP server s: Connection closed; it printed: no luck, \[hidden\]"),
    ("hang", "MCP server s: no answer after 2 s"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as started:
        yield started


def job(root: Path, server: ScriptedServer, prompts: list[Any], **config: Any) -> Job:
    Path("d.yaml").write_text("d:\n  terminal: 100\n  mcp:s: 100\n")
    own = {"mcp_servers": "servers.json", "distributions_file": "d.yaml", "distribution": "d", "mcp_timeout": 20}
    return Job(root, server, prompts, **{"local_isolation": "auto", **own, **config})


@pytest.mark.parametrize(("mode", "message"), REFUSED_SERVERS)
def test_a_server_that_is_of_no_use_stops_the_start(
    folder: Path, server: ScriptedServer, mode: str, message: str
) -> None:
    write(s=plain(mode, env={"TOKEN": "${TOKEN}"}))
    with pytest.raises(UserError, match=message):
        job(folder, server, ["a"], mcp_timeout=2 if mode == "hang" else 20)
    assert not (folder / "data" / "r" / "run.json").exists() and server.counters()["calls"] == 0


def test_a_server_that_is_of_no_use_is_left_out_on_request(
    folder: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write(s=plain("no_tools"))
    made = job(folder, server, ["a"], missing_toolsets="drop")
    made.release()
    identity = json.loads(made.folder.run_json.read_bytes())
    assert identity["dropped_toolsets"] == ["mcp:s"] and identity["chances"] == {"terminal": 100}
    assert "left out because they cannot work here: mcp:s (MCP server s: it offers no tools)" in capsys.readouterr().err


def test_what_servers_offer_is_fixed_for_the_run(folder: Path, server: ScriptedServer) -> None:
    mark = {"MARK": str(folder / "mark")}
    write(s=plain(env=mark))
    made = job(folder, server, ["a", "b"])
    made.release()
    begun = (folder / "mark").read_text()
    prepare_run(made.config)
    assert (folder / "mark").read_text() == begun, "a plan asks no server"
    made.plan(preflight=False)
    assert (folder / "mark").read_text() == begun, "nor does a start without preflight that knows the tools"
    write(s=plain("more", env=mark))
    with pytest.raises(UserError, match=r"MCP server s offers other tools (?s:.*)\n  mcp_s_more: new\nChoose another"):
        made.plan(preflight=True)
    for change, more in (("run", False), ("keep", True)):
        made.plan(preflight=True, settings_change=change)
        identity = json.loads(made.folder.run_json.read_bytes())
        assert ("mcp_s_more" in identity["tools"]) is more
        assert len(identity["history"]) == 1 + more, "other tools are other settings of the rows"
    made.release()


@pytest.mark.parametrize("where", ["host", "sandbox"])
def test_prompts_use_a_server_from_start_to_end(folder: Path, server: ScriptedServer, where: str) -> None:
    mark = {} if where == "sandbox" else {"env": {"MARK": str(folder / "mark"), "TOKEN": "${TOKEN}"}}
    write(s=plain(where=where, **mark))
    made = job(folder, server, ["a", "b", "c"])
    called = [{"name": "mcp_s_echo", "arguments": {"text": "hi"}}, {"name": "mcp_s_fail", "arguments": {}}]
    made.script({"regex": ".", "replies": [{"tool_calls": called}, {"text": "done"}]})
    assert made.here() == 0
    made.release()
    for row in made.rows():
        assert row.toolsets_used == ["terminal", "mcp:s"]
        assert (row.tool_stats["mcp_s_echo"].success, row.tool_stats["mcp_s_fail"].failure) == (1, 1)
        assert {"mcp_s_big", "mcp_s_dotted_name", "terminal"} <= row.tool_stats.keys()
    if where == "host":
        assert (folder / "mark").read_text() == "begun\n" * 2, "once at the start, once for all prompts of the shard"
    assert running("An MCP server over standard input") == []
    assert not [path for path in folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


def test_a_server_from_a_registry_package(folder: Path, server: ScriptedServer) -> None:
    if find_spec("mcp_server_time") is None:
        pytest.skip("needs the package mcp-server-time")
    write(s={"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]})
    made = job(folder, server, ["a"], mcp_timeout=60)
    zones = [{"name": "mcp_s_get_current_time", "arguments": {"timezone": zone}} for zone in ("UTC", "Mars")]
    made.script({"match": "a", "replies": [{"tool_calls": zones}, {"text": "done"}]})
    assert made.here() == 0
    made.release()
    [row] = made.rows()
    assert row.tool_stats["mcp_s_get_current_time"] == type(row.tool_stats["terminal"])(2, 1, 1)
    told = [turn.value for turn in row.conversations if turn.from_ == "tool"]
    assert json.loads(told[0])["timezone"] == "UTC" and "Invalid timezone" in json.loads(told[1])["error"]
    identity = json.loads(made.folder.run_json.read_bytes())
    assert [tool["name"] for tool in identity["mcp_tools"]["s"]] == ["mcp_s_get_current_time", "mcp_s_convert_time"]


def test_a_shard_without_the_server_fails_its_prompts(
    folder: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(s=plain(env={"TOKEN": "${TOKEN}"}))
    made = job(folder, server, ["a"])
    made.script({"match": "a", "replies": [{"tool_calls": [{"name": "mcp_s_echo", "arguments": {"text": "x"}}]}]})
    monkeypatch.delenv("TOKEN")
    assert made.here() == 0
    made.release()
    [failure] = made.failures()
    assert failure.kind == "mcp_unavailable" and "TOKEN is not set in the environment" in failure.message


LACKS = [
    ({"command": "no-such-command"}, "mcp:s: mcp_servers: there is no command 'no-such-command' on this machine"),
    ({"url": "http://h/mcp", "headers": {"A": "${UNSET_ONE}"}}, "mcp:s: UNSET_ONE is not set in the environment"),
]


@pytest.mark.parametrize(("entry", "message"), LACKS)
def test_what_a_server_lacks_is_told_before_anything_runs(folder: Path, entry: dict[str, Any], message: str) -> None:
    write(s=entry)
    Path("d.yaml").write_text("d:\n  mcp:s: 100\n")
    Path("p.jsonl").write_text('{"prompt": "a"}\n')
    config = {"dataset_file": "p.jsonl", "model": "m", "distribution": "d", "distributions_file": "d.yaml"}
    with pytest.raises(UserError, match=f"{message}(?s:.*)Distributions that work now: .*terminal_only"):
        prepare_run({**config, "mcp_servers": "servers.json"})


WRONG = [
    ("{", "while parsing"),
    ("[]", 'expected {"mcpServers"'),
    ({"s": 5}, "server 's' is no mapping"),
    ({"a b": {"command": "x"}}, "server 'a b': a name is of up to 32 letters"),
    ({"s": {"comand": "x"}}, "comand is not known; a server takes command, args, env, url, headers, where"),
    ({"s": {}}, "it takes either a command or a url"),
    ({"s": {"command": "x", "url": "http://h"}}, "it takes either a command or a url"),
    ({"s": {"command": "x", "args": "y"}}, None),
    ({"s": {"command": "x", "args": [5]}}, "command, args and url are texts"),
    ({"s": {"command": "x", "env": {"A": 5}}}, "env and headers map names to texts"),
    ({"s": {"url": "ftp://h"}}, "url must begin with http:// or https://"),
    ({"s": {"url": "http://h", "where": "sandbox"}}, "where is host or, for a command, sandbox"),
    ({"s": {"command": "x", "args": ["--key=${TOKEN}"]}}, "can be seen by everybody on the machine"),
    ({"s": {"command": "x", "env": {"A": "${TOKEN}"}, "where": "sandbox"}}, "would show the model"),
]


@pytest.mark.parametrize(("content", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_what_is_wrong_in_the_file_is_told(content: Any, message: str | None) -> None:
    Path("servers.json").write_text(content if isinstance(content, str) else json.dumps({"mcpServers": content}))
    settings = load_settings({"mcp_servers": "servers.json"})
    if message is None:
        assert "mcp:s" in load_toolsets(settings)
        return
    with pytest.raises(UserError) as error:
        load_toolsets(settings)
    assert str(error.value).startswith("mcp_servers: servers.json: ") and message in str(error.value)


def test_the_file_may_be_yaml_and_holds_no_secret(folder: Path) -> None:
    Path("servers.yaml").write_text("mcpServers:\n  s:\n    command: cat\n    type: stdio\n    env: {A: '${TOKEN}'}\n")
    assert read_servers("servers.yaml")["s"].secrets == [CANARY]
    with pytest.raises(UserError, match=r"mcp_servers: gone\.json cannot be read"):
        read_servers("gone.json")


def test_names_fit_the_chat_api() -> None:
    assert offered_name("git", "git.status") == "mcp_git_git_status"
    long = [offered_name("server", "x" * 60 + end) for end in "ab"]
    assert {len(name) for name in long} == {64} and long[0] != long[1]


def test_importing_the_registry_imports_no_sdk() -> None:
    code = "import sys, trajectile.tools.registry; sys.exit('mcp' in sys.modules or 'anyio' in sys.modules)"
    scripts = str(Path(__file__).parents[1] / "scripts")
    assert subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": scripts}).returncode == 0
