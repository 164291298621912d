"""The Modal backend through Modal's own SDK, against the stand-in."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from trajectile.sandbox import isolation

pytest.importorskip("modal", reason="the extra `modal` is not installed")
if problem := isolation.bwrap_problem():
    pytest.skip(f"the stand-in's sandboxes need bubblewrap: {problem}", allow_module_level=True)

from modal_proto import api_pb2
from modal_standin.server import Standin, standin
from trajectile.sandbox import modal_owner
from trajectile.sandbox.base import SandboxDied
from trajectile.sandbox.images import ImageUnavailable
from trajectile.sandbox.modal import ModalSandbox, mebibytes

Test = Callable[[ModalSandbox], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standin]:
    with pytest.MonkeyPatch.context() as patch, standin(tmp_path_factory.mktemp("machines")) as running:
        for name, value in {"SERVER_URL": running.url, "TOKEN_ID": "known", "TOKEN_SECRET": "secret"}.items():
            patch.setenv(f"MODAL_{name}", value)
        yield running


@asynccontextmanager
async def opened(image: str = "python:3.12", **options: Any) -> AsyncIterator[ModalSandbox]:
    sandbox = ModalSandbox(image, **{"output_limit": 20_000, **options})
    try:
        await sandbox.start()
        yield sandbox
    finally:
        await sandbox.close()


def within(server: Standin, test: Test, **options: Any) -> None:
    async def run() -> None:
        async with opened(**options) as sandbox:
            await test(sandbox)

    asyncio.run(run())
    assert server.living() == []


async def said(sandbox: ModalSandbox, command: str, timeout_s: float = 60) -> str:
    return (await sandbox.exec(command, timeout_s=timeout_s)).output.decode()


def test_state_files_and_input(server: Standin) -> None:
    async def test(sandbox: ModalSandbox) -> None:
        assert (await sandbox.exec("export N=$((N+1)); mkdir a; cd a; exit 3", timeout_s=60)).exit_code == 3
        assert await said(sandbox, "echo $N ${PWD##*/}") == "1 a\n"
        large = os.urandom(1 << 20) * 5
        await sandbox.write_file("f", large)
        assert await sandbox.read_file("../a/f") == large
        with pytest.raises(FileNotFoundError):
            await sandbox.read_file("none")
        stdin: asyncio.Queue[bytes | None] = asyncio.Queue()
        task = asyncio.ensure_future(sandbox.exec("read a; echo got $a; cat", timeout_s=60, stdin=stdin))
        for part in (b"one\n", b"two\n", None):
            stdin.put_nowait(part)
        assert (await task).output == b"got one\ntwo\n"
        assert await said(sandbox, f"v={'x' * 300_000}; echo ${{#v}}") == "300000\n"  # the SDK takes 64 KiB

    within(server, test, cwd="/tmp/work")


def test_deadline_and_cancelling_kill_the_tree(server: Standin) -> None:
    """S18."""

    async def test(sandbox: ModalSandbox) -> None:
        await sandbox.exec("sleep 6001 & disown", timeout_s=60)
        start = time.monotonic()
        tree = "echo part; (env -i setsid /bin/sleep 6002 &) ; setsid sleep 6003 & wait; sleep 6004"
        result = await sandbox.exec(tree, timeout_s=2)
        assert result.timed_out
        assert result.output == b"part\n"
        assert time.monotonic() - start < 6
        task = asyncio.ensure_future(sandbox.exec("sleep 6005", timeout_s=None))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await said(sandbox, "ps -eo args | grep -o '^[a-z/]*sleep 600.'") == "sleep 6001\n"

    within(server, test)


def test_an_ended_sandbox_is_noticed_with_its_cause(server: Standin) -> None:
    """S20."""

    async def test(sandbox: ModalSandbox) -> None:
        task = asyncio.ensure_future(sandbox.exec("sleep 1000", timeout_s=None))
        await asyncio.sleep(1)
        await asyncio.to_thread(server.end, server.living()[0], 137)
        for attempt in (task, sandbox.exec("true", timeout_s=60)):
            with pytest.raises(SandboxDied, match="terminated, or out of memory"):
                await attempt

    within(server, test)


def test_each_prompt_has_its_own_image_and_nothing_leaks(server: Standin) -> None:
    """S22."""

    async def one(image: str) -> str:
        async with opened(image) as sandbox:
            await sandbox.exec("export N=$((N+1)); echo $N >>same", timeout_s=60)
            assert sandbox.image_digest.startswith("im-")
            return await said(sandbox, "echo $N $(cat same) $(cat ~/image)")

    async def both() -> list[str]:
        return list(await asyncio.gather(one("first:1"), one("second:2")))

    assert asyncio.run(both()) == ["1 1 first:1\n", "1 1 second:2\n"]


@pytest.mark.parametrize(("network", "kind"), [("none", "BLOCKED"), ("bridge", "OPEN")])
def test_what_is_asked_of_modal(server: Standin, network: str, kind: str) -> None:
    async def test(sandbox: ModalSandbox) -> None:
        request = server.control.machines[server.living()[0]].request
        resources, access = request.definition.resources, request.definition.network_access
        assert (resources.memory_mb, resources.memory_mb_max) == (2048, 2048)
        assert (resources.milli_cpu, resources.milli_cpu_max) == (1500, 1500)
        assert api_pb2.NetworkAccess.NetworkAccessType.Name(access.network_access_type) == kind
        assert not request.secret_sources
        assert not request.definition.secret_ids
        assert {tag.tag_name: tag.tag_value for tag in request.tags} == {"run": "r"}

    within(server, test, network=network, memory="2g", cpus=1.5, tags={"run": "r"})


def test_nothing_of_the_callers_environment_is_sent(server: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "canary-in-env")

    async def test(sandbox: ModalSandbox) -> None:
        assert "canary" not in await said(sandbox, "env; cat /proc/*/environ")
        assert b"canary" not in server.control.machines[server.living()[0]].request.SerializeToString()

    within(server, test)


def test_image_that_cannot_be_built_ends_its_prompts_only(server: Standin) -> None:
    async def test(_: ModalSandbox) -> None: ...

    with pytest.raises(ImageUnavailable, match="manifest for missing:1 not found"):
        within(server, test, image="missing:1")
    assert server.living() == []
    within(server, test)


def test_only_what_a_dead_owner_left_is_terminated(server: Standin) -> None:
    async def test(_: ModalSandbox) -> None:
        def reap(run: str, dead: bool) -> int:
            return modal_owner.terminate_left({"run": run}, lambda tags: dead and tags["host"] == socket.gethostname())

        assert await asyncio.to_thread(reap, "another", True) == 0
        assert await asyncio.to_thread(reap, "this", False) == 0
        assert len(server.living()) == 1
        assert await asyncio.to_thread(reap, "this", True) == 1
        assert server.living() == []

    within(server, test, tags={"run": "this", "host": socket.gethostname()})


def test_forty_at_once_leave_nothing(server: Standin) -> None:
    async def one(number: int) -> str:
        async with opened() as sandbox:
            await sandbox.exec(f"export N={number}", timeout_s=120)
            return await said(sandbox, "echo $N", 120)

    async def all_of_them() -> list[str]:
        return list(await asyncio.gather(*map(one, range(40))))

    assert asyncio.run(all_of_them()) == [f"{number}\n" for number in range(40)]
    assert server.living() == []


@pytest.mark.parametrize(("memory", "expected"), [("2g", 2048), ("512m", 512), ("512K", 1), ("1G", 1024)])
def test_memory_in_mebibytes(memory: str, expected: int) -> None:
    assert mebibytes(memory) == expected


UNKNOWN_ACCOUNT = """
import asyncio
from trajectile.errors import FatalError
from trajectile.sandbox.modal import ModalSandbox

try:
    asyncio.run(ModalSandbox("python:3.12", output_limit=1000).start())
except FatalError as error:
    print(error)
"""


def test_an_account_that_modal_does_not_know_stops_the_run(server: Standin, tmp_path: Path) -> None:
    env = {**os.environ, "MODAL_TOKEN_ID": "unknown", "HOME": str(tmp_path)}
    env["PYTHONPATH"] = str(Path(isolation.__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", UNKNOWN_ACCOUNT], env=env, capture_output=True, text=True, check=False)
    assert "Token ID not recognised" in done.stdout, done.stderr
    assert "modal token new" in done.stdout
