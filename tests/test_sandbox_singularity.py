"""Containers of apptainer or singularity, run for real from images made of this machine's own programs."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from container_images import rootfs
from sandbox_contract.subjects import gone, running, said
from trajectile.errors import FatalError, PromptError
from trajectile.sandbox import scratch
from trajectile.sandbox.base import SandboxDied
from trajectile.sandbox.limits import Limits
from trajectile.sandbox.singularity import apptainer
from trajectile.sandbox.singularity.apptainer import Options
from trajectile.sandbox.singularity.container import end_left
from trajectile.sandbox.singularity.sandbox import SingularitySandbox

pytestmark = [
    pytest.mark.apptainer,
    pytest.mark.skipif(
        not (shutil.which("apptainer") or shutil.which("singularity")),
        reason="neither apptainer nor singularity is in PATH",
    ),
]
# Who is not root is not even asked which network.
NO_NETWORK = "nosuchnet" if os.geteuid() == 0 else "non-root users can only use --network=none"
Test = Callable[[SingularitySandbox], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    for mark in ("one", "two"):
        rootfs.make(folder / mark, mark)
    return folder


@pytest.fixture(scope="module")
def image(roots: Path) -> str:
    built = roots / "one.sif"
    command = [apptainer.binary(), "--silent", "build", str(built), str(roots / "one")]
    subprocess.run(command, check=True, capture_output=True)
    return str(built)


@asynccontextmanager
async def opened(
    parent: Path, image: str, cwd: str = "", output_limit: int = 20_000, **options: Any
) -> AsyncIterator[SingularitySandbox]:
    sandbox = SingularitySandbox(parent, image, cwd=cwd, output_limit=output_limit, options=Options(**options))
    try:
        await sandbox.start()
        yield sandbox
    finally:
        await sandbox.close()


def within(parent: Path, image: str, test: Test, **options: Any) -> None:
    async def run() -> None:
        async with opened(parent, image, **options) as sandbox:
            await test(sandbox)

    asyncio.run(run())
    assert list(parent.iterdir()) == []
    assert running(str(parent)) == []


def test_a_folder_is_an_image_too_and_each_prompt_gets_its_own(tmp_path: Path, image: str, roots: Path) -> None:
    """S22."""

    async def one(which: str) -> str:
        async with opened(tmp_path, which) as sandbox:
            await sandbox.exec("export N=$((N+1)); echo $N >>/etc/same; echo x >/tmp/t; touch ~/h", timeout_s=60)
            return await said(sandbox, "echo $N $(cat /etc/same /etc/mark) $(ls /tmp ~)")

    async def all_of_them() -> list[str]:
        return list(await asyncio.gather(*map(one, [image, image, str(roots / "one"), str(roots / "two")])))

    assert asyncio.run(all_of_them()) == [f"1 1 {mark} /root: h /tmp: t\n" for mark in ("one", "one", "one", "two")]
    assert not (roots / "one/etc/same").exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cwd", ["/work", "/made/for you", ""])
def test_working_folder(tmp_path: Path, image: str, cwd: str) -> None:
    async def test(sandbox: SingularitySandbox) -> None:
        assert await said(sandbox, "touch here && pwd") == f"{cwd or '/root'}\n"
        await sandbox.write_file("f", b"\0\xff")
        assert await sandbox.read_file(f"{cwd or '/root'}/f") == b"\0\xff"

    within(tmp_path, image, test, cwd=cwd)


def test_signals_of_a_command_stay_its_own(tmp_path: Path, image: str) -> None:
    async def test(sandbox: SingularitySandbox) -> None:
        ignored = await said(sandbox, "grep SigIgn /proc/self/status")
        assert int(ignored.split()[1], 16) == 0
        for command, code in {"kill 0": 143, "kill -9 $$": 137, "kill -9 $PPID": 137, "exit 3": 3}.items():
            assert (await sandbox.exec(command, timeout_s=60)).exit_code == code
        assert (await sandbox.exec("kill -STOP $$", timeout_s=1)).timed_out
        assert await said(sandbox, "exec >/dev/null 2>&1; sleep 2; export X=1") == ""
        assert await said(sandbox, "echo $X") == "1\n"

    within(tmp_path, image, test)


def test_a_command_that_kills_all_it_can_ends_its_container(tmp_path: Path, image: str) -> None:
    """S20."""

    async def test(sandbox: SingularitySandbox) -> None:
        task = asyncio.ensure_future(sandbox.exec("sleep 1000", timeout_s=None))
        await asyncio.sleep(0.3)
        with pytest.raises(SandboxDied):
            await sandbox.exec("kill -9 -1", timeout_s=60)
        for attempt in (task, sandbox.exec("true", timeout_s=60), sandbox.read_file("/etc/mark")):
            with pytest.raises(SandboxDied, match="the container ended: killed"):
                await attempt

    within(tmp_path, image, test)


def test_what_does_not_work_here_is_told_by_the_engine() -> None:
    assert apptainer.problem(Options()) == ""
    assert NO_NETWORK in apptainer.problem(Options(network="nosuchnet"))
    assert apptainer.problem(Options(limits=Limits(memory="nonsense"))) != ""


def test_read_only_but_for_temporary_folders_and_mounts(tmp_path: Path, image: str) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "given").write_text("given\n")

    async def test(sandbox: SingularitySandbox) -> None:
        assert await said(sandbox, "echo x >/etc/x || cat /data/given; echo x >/data/x; echo y >/tmp/y; cat /tmp/y")
        assert await said(sandbox, "ls /etc/x /data /tmp 2>/dev/null") == "/data:\ngiven\n\n/tmp:\ny\n"

    within(tmp_path / "run", image, test, read_only=True, mounts=(f"{shared}:/data:ro",))


def test_images_without_bash_work_too(tmp_path: Path) -> None:
    """What busybox images hold: a shell that is not bash."""
    if not shutil.which("dash"):
        pytest.skip("no dash here to put into an image")
    bare = rootfs.make(tmp_path / "bare", programs=[name for name in rootfs.PROGRAMS if name not in ("bash", "sh")])
    shutil.copy(shutil.which("dash") or "", bare / "bin/sh")

    async def test(sandbox: SingularitySandbox) -> None:
        assert sandbox.shell == "sh"
        await sandbox.exec("export A=1; cd /tmp", timeout_s=60)
        assert await said(sandbox, "echo $A $PWD; kill 0") == "1 /tmp\n"
        assert (await sandbox.exec("sleep 100 & sleep 100", timeout_s=1)).timed_out
        assert "sleep" not in await said(sandbox, "ps -e")

    within(tmp_path / "run", str(bare), test)


def test_nothing_of_the_caller_is_within_reach(tmp_path: Path, image: str) -> None:
    (tmp_path / "run").mkdir()
    secret = tmp_path / "secret"
    secret.write_text("canary-in-file")
    program = (
        "import asyncio, sys; from test_sandbox_singularity import *\n"
        "async def test(sandbox): print(await said(sandbox, sys.argv[3]))\n"
        "within(Path(sys.argv[1]), sys.argv[2], test, output_limit=1000000)"
    )
    command = f"env; cat /proc/*/environ /proc/*/cmdline; cat {secret}; ls {Path.home()}/ {Path.cwd()}"
    env = {**os.environ, "CANARY": "canary-in-env", "APPTAINERENV_CANARY": "canary-in-env"}
    env["APPTAINER_BIND"] = str(tmp_path)
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    arguments = [sys.executable, "-c", program, str(tmp_path / "run"), image, command]
    seen = subprocess.run(arguments, env=env, capture_output=True, text=True, check=True).stdout
    assert "HOME=/root" in seen
    assert "canary-in" not in seen
    assert "APPTAINER_CONTAINER" not in seen.splitlines()[0:20]


def test_a_command_is_shut_in(tmp_path: Path, image: str) -> None:
    async def test(sandbox: SingularitySandbox) -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        assert (await sandbox.exec(f"exec 3<>/dev/tcp/127.0.0.1/{port}", timeout_s=60)).exit_code != 0
        server.close()
        assert await said(sandbox, "grep -c : /proc/net/dev; uname -n") == "1\nsandbox\n"
        status = await said(sandbox, "grep -e NoNewPrivs -e CapBnd /proc/self/status")
        assert "NoNewPrivs:\t1" in status
        assert int(status.split()[1], 16) & ~0b11101011 == 0  # none but those in CAPABILITIES
        for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches"):
            assert (await sandbox.exec(f"echo x >{path}", timeout_s=60)).exit_code != 0
        assert await said(sandbox, "ls /sys") == ""
        # The numbers of the host's processes mean nothing in there.
        assert (await sandbox.exec(f"kill -0 {os.getpid()}", timeout_s=60)).exit_code != 0

    within(tmp_path, image, test)


def test_a_network_that_is_not_there_is_named_by_the_engine(tmp_path: Path, image: str) -> None:
    async def test(_: SingularitySandbox) -> None: ...

    with pytest.raises(PromptError, match=NO_NETWORK):
        within(tmp_path, image, test, network="nosuchnet")
    assert list(tmp_path.iterdir()) == []


def test_links_in_the_shared_folder_lead_nowhere(tmp_path: Path, image: str) -> None:
    """A command that puts a link in place of a pipe must not make us open a file of the host."""
    swap = "while :; do for f in /run/sandbox/*.out; do ln -sf {} $f; done; done 2>/dev/null"
    (tmp_path / "run").mkdir()
    secret = tmp_path / "secret"
    secret.write_text("canary")

    async def test(sandbox: SingularitySandbox) -> None:
        task = asyncio.ensure_future(sandbox.exec(swap.format(secret), timeout_s=6))
        await asyncio.sleep(0.5)
        for _ in range(20):
            try:
                result = await sandbox.exec("echo mine", timeout_s=0.3)
            except SandboxDied as error:
                assert "replaced" in str(error) or "could not be started" in str(error)
            else:
                assert result.output in (b"mine\n", b"")
        await task
        assert await said(sandbox, "echo on") == "on\n"

    within(tmp_path / "run", image, test)
    assert secret.read_text() == "canary"


def test_noise_on_the_keepers_channel_is_passed_over(tmp_path: Path, image: str) -> None:
    async def test(sandbox: SingularitySandbox) -> None:
        noise = "head -c 3000000 /dev/zero >/proc/$k/fd/4; printf 'exit x\\nbegin a b\\nexit 1 2\\n' >/proc/$k/fd/4"
        find = "for p in /proc/[0-9]*; do [[ $(<$p/comm) != sandbox ]] || { k=${p#/proc/}; break; }; done 2>/dev/null"
        assert (await sandbox.exec(f"{find}; echo $k; {noise}; exit 5", timeout_s=60)).exit_code == 5
        assert await said(sandbox, "echo on") == "on\n"

    within(tmp_path, image, test)


def test_images_that_cannot_run_say_why(tmp_path: Path, roots: Path) -> None:
    bare = rootfs.make(tmp_path / "bare", programs=["cat"])
    broken = tmp_path / "broken.sif"
    broken.write_bytes(b"not an image")

    async def test(_: SingularitySandbox) -> None: ...

    for image, message in {str(bare): "sh", str(broken): "image", str(tmp_path / "no.sif"): "no.sif"}.items():
        with pytest.raises(PromptError, match=message) as caught:
            within(tmp_path / "run", image, test)
        assert caught.value.kind == "sandbox_start"
    with pytest.raises(PromptError, match="/etc/mark"):
        within(tmp_path / "run", str(roots / "one"), test, cwd="/etc/mark/below")
    assert list((tmp_path / "run").iterdir()) == []


def test_without_an_engine_nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    async def test(_: SingularitySandbox) -> None: ...

    with pytest.raises(FatalError, match="apptainer"):
        within(tmp_path / "run", "x.sif", test)
    assert list((tmp_path / "run").iterdir()) == []


OWNER_PROGRAM = """
import asyncio, sys
from pathlib import Path
from trajectile.sandbox.singularity.apptainer import Options
from trajectile.sandbox.singularity.sandbox import SingularitySandbox

async def main():
    sandbox = SingularitySandbox(Path(sys.argv[1]), sys.argv[2], output_limit=1000, options=Options())
    await sandbox.start()
    await sandbox.exec(sys.argv[3], timeout_s=None)

asyncio.run(main())
"""
# A hostile command can keep the keeper from seeing that its owner is gone.
HOLD = "for p in /proc/[0-9]*; do [[ $(<$p/comm) != sandbox ]] || exec 5>$p/fd/3; done 2>/dev/null; "


def test_a_container_that_a_command_keeps_alive_is_ended_at_the_next_start(tmp_path: Path, image: str) -> None:
    mark = f"5{os.getpid()}"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = f"{HOLD}setsid sleep {mark} & sleep {mark}"
    owner = subprocess.Popen([sys.executable, "-c", OWNER_PROGRAM, str(tmp_path), image, command], env=env)
    while len(running(f"sleep\0{mark}")) < 2:
        assert owner.poll() is None
        time.sleep(0.02)
    assert scratch.reap(tmp_path, end_left) == 0
    owner.kill()
    owner.wait()
    assert scratch.reap(tmp_path, end_left) == 1
    assert gone(f"sleep\0{mark}")
    assert list(tmp_path.iterdir()) == []
    assert gone(str(tmp_path))
