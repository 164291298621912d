"""Local sandboxes under each layer of isolation that this machine has."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from trajectile.errors import FatalError, PromptError
from trajectile.sandbox.local import isolation, landlock_rules
from trajectile.sandbox.local.isolation import describe_isolation
from trajectile.sandbox.local.sandbox import LocalSandbox
from trajectile.sandbox.output import HeadTail, to_text

PROBLEMS: dict[str, Callable[[], str]] = {
    "bwrap": isolation.bwrap_problem,
    "landlock": landlock_rules.problem,
    "none": str,
}
Test = Callable[[LocalSandbox], Coroutine[Any, Any, None]]


@pytest.fixture(params=PROBLEMS)
def layer(request: pytest.FixtureRequest) -> str:
    if problem := PROBLEMS[request.param]():
        pytest.skip(f"{request.param}: {problem}")
    return str(request.param)


@asynccontextmanager
async def opened(parent: Path, layer: str, **options: Any) -> AsyncIterator[LocalSandbox]:
    sandbox = LocalSandbox(parent, layer, **{"output_limit": 20_000, **options})
    await sandbox.start()
    try:
        yield sandbox
    finally:
        await sandbox.close()


def within(parent: Path, layer: str, test: Test, **options: Any) -> None:
    async def run() -> None:
        async with opened(parent, layer, **options) as sandbox:
            await test(sandbox)

    asyncio.run(run())
    assert list(parent.iterdir()) == []


async def said(sandbox: LocalSandbox, command: str, timeout_s: float = 30) -> str:
    return (await sandbox.exec(command, timeout_s=timeout_s)).output.decode()


def test_folders_are_removed_whatever_is_in_them(tmp_path: Path, layer: str) -> None:
    async def test(sandbox: LocalSandbox) -> None:
        deep = "import os\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')"
        command = f'mkdir -p a/b; touch a/b/c; chmod 0 a/b a; python3 -c "{deep}"'
        assert await said(sandbox, command) == ""

    within(tmp_path, layer, test)


@pytest.mark.parametrize("cwd", ["repo/src", "/repo/src", "/repo/../repo/src/"])
def test_cwd_is_inside_the_scratch_folder(tmp_path: Path, layer: str, cwd: str) -> None:
    async def test(sandbox: LocalSandbox) -> None:
        assert await said(sandbox, "echo ${PWD#$HOME}; cd ..; cd; echo ${PWD#$HOME}.") == "/repo/src\n.\n"

    within(tmp_path, layer, test, cwd=cwd)


@pytest.mark.parametrize("cwd", ["..", "/../x", "a/../../b", "a\0b"])
def test_cwd_that_leads_out_is_refused(tmp_path: Path, cwd: str) -> None:
    with pytest.raises(PromptError):
        LocalSandbox(tmp_path, "none", cwd=cwd, output_limit=1000)


def test_auto_takes_the_strongest_that_works() -> None:
    working = [name for name, problem in PROBLEMS.items() if name != "none" and not problem()]
    if not working:
        with pytest.raises(FatalError, match="local_isolation: none"):
            isolation.resolve("auto")
        return
    assert isolation.resolve("auto") == working[0]
    assert describe_isolation("auto") == describe_isolation(working[0])
    assert "WITHOUT isolation" in describe_isolation("none")


@pytest.mark.parametrize("network", ["auto", "bridge", "host"])
def test_the_network_is_open_where_it_is_asked_for(tmp_path: Path, layer: str, network: str) -> None:
    """In a layer that could cut it."""

    async def test(sandbox: LocalSandbox) -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reached = (await sandbox.exec(f"exec 3<>/dev/tcp/127.0.0.1/{port}", timeout_s=30)).exit_code == 0
        assert reached == (layer == "none" or network != "auto")
        server.close()

    if layer == "landlock" and landlock_rules.abi() < landlock_rules.ABI_TCP:
        pytest.skip("this kernel's Landlock leaves the network open")
    within(tmp_path, layer, test, network=network)
    assert ("no network" in describe_isolation(layer, network)) == (layer == "bwrap" and network == "auto")


def test_no_network_is_refused_where_it_cannot_be_had(layer: str) -> None:
    if layer == "bwrap":
        assert isolation.resolve(layer, "none") == layer
    else:
        with pytest.raises(FatalError, match="sandbox_network: none cannot be had"):
            isolation.resolve(layer, "none")
    with pytest.raises(FatalError, match="sandbox_network: mine is for containers"):
        isolation.resolve(layer, "mine")


def test_head_tail_keeps_both_ends() -> None:
    buffer = HeadTail(10)
    for part in (b"0123", b"4567", b"x" * 200_000, b"abcde"):
        buffer.feed(part)
    assert buffer.value() == "01234\n[… 200003 bytes cut …]\nabcde".encode()
    small = HeadTail(10)
    small.feed(b"0123456789")
    assert small.value() == b"0123456789"


def test_text_is_valid_whatever_the_bytes() -> None:
    raw = b"\x1b[31mred\x1b[0m \x1b]0;title\x07\xff\xed\xa0\x80 a\x00b " + "\u2028\u2029\u0085é".encode()
    text = to_text(raw)
    assert text == "red \ufffd\ufffd\ufffd\ufffd a\ufffdb \u2028\u2029\u0085é"
    assert text.encode("utf-8")
