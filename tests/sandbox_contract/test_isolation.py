"""What a hostile command reaches: nothing of its caller or its neighbours. docs/sandboxes.md names these tests."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from trajectile.sandbox.base import Sandbox

from sandbox_contract.subjects import Subject, said

needs = pytest.mark.needs
SCRIPTS = Path(__file__).parents[2] / "scripts"
CANARY_PROGRAM = """
import asyncio, sys
from pathlib import Path
from sandbox_contract.subjects import SUBJECTS

async def main():
    subject = SUBJECTS[sys.argv[1]]()[1](Path(sys.argv[2]))
    async with subject.opened(output_limit=10**8) as sandbox:
        command = f"env; cat /proc/*/environ; cat {sys.argv[3]}; cat ~/.canary"
        print((await sandbox.exec(command, timeout_s=60)).output)

asyncio.run(main())
"""


def seen_by_commands(subject: Subject, folder: Path) -> str:
    """Return what commands see when their caller's environment and home hold a secret."""
    home = folder / "home"
    home.mkdir()
    (home / ".canary").write_text("canary-in-file")
    paths = os.pathsep.join([str(SCRIPTS), str(SCRIPTS.parent / "tests")])
    env = {**os.environ, "CANARY": "canary-in-env", "HOME": str(home), "PYTHONPATH": paths}
    env["TRAJECTILE_API_KEY"] = "canary-in-env"
    command = [sys.executable, "-c", CANARY_PROGRAM, subject.name, str(subject.root), str(home / ".canary")]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


def test_canaries_are_out_of_reach(subject: Subject, tmp_path: Path) -> None:
    seen = seen_by_commands(subject, tmp_path)
    assert "HOME=" in seen
    if subject.sees_host:  # so the canaries are where they should be
        assert "canary-in-env" in seen and "canary-in-file" in seen
    else:
        assert "canary-in" not in seen


def test_nothing_leaks_between_sandboxes(subject: Subject) -> None:
    """S22: equal commands, other images."""

    async def one(image: str) -> str:
        async with subject.opened(image=image) as sandbox:
            place = "/var/tmp" if subject.in_container else "${TMPDIR:-/tmp}"
            await sandbox.exec(f"export N=$((N+1)); echo $N >>same; echo x >{place}/tmp$N", timeout_s=60)
            await asyncio.sleep(0.2)
            mark = subject.mark if image else "echo"
            return await said(sandbox, f"echo $N $(cat same) $(ls {place}) $({mark})")

    async def both() -> list[str]:
        return list(await asyncio.gather(*map(one, subject.images)))

    marks = ["one", "two"] if subject.in_container else ["", ""]
    lines = [line.strip().removesuffix(":1") for line in asyncio.run(both())]
    assert lines == [f"1 1 tmp1 {mark}".strip() for mark in marks]
    assert subject.left() == []


@needs("isolation")
def test_no_network_and_no_signals_to_the_outside(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        assert (await sandbox.exec(f"exec 3<>/dev/tcp/127.0.0.1/{port}", timeout_s=60)).exit_code != 0
        bystander = await asyncio.create_subprocess_exec("sleep", "600")
        try:
            await sandbox.exec(f"kill -9 {bystander.pid}", timeout_s=60)
            await asyncio.sleep(0.2)
            assert bystander.returncode is None
        finally:
            bystander.kill()
            await bystander.wait()
            server.close()

    subject.run(test)


@needs("isolation")
def test_privileges_are_dropped(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        status = await said(sandbox, "cat /proc/self/status || cat /proc/$$/status")
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        effective = int(fields["CapEff"], 16)
        shell = sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7))  # CHOWN … KILL, SETGID, SETUID
        assert effective & ~shell == 0
        assert fields["NoNewPrivs"] == "1"
        mounting = "mkdir -p m; mount -t tmpfs x m 2>&1 || echo refused; cat /proc/kcore >/dev/null || echo refused"
        assert "refused" in await said(sandbox, mounting)

    if subject.name == "local-landlock":
        pytest.skip("it cannot be seen from inside")
    subject.run(test)


@needs("isolation")
def test_the_system_of_the_machine_cannot_be_written(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        await sandbox.exec("echo x >/usr/bin/trajectile-canary; echo x >/etc/trajectile-canary", timeout_s=60)
        await sandbox.exec("echo 1 >/proc/sys/kernel/trajectile; echo x >/sys/kernel/trajectile", timeout_s=60)
        assert (await sandbox.exec('head -c 4 "$(command -v bash)"', timeout_s=60)).output == b"\x7fELF"
        trigger = await sandbox.exec("[ ! -w /proc/sysrq-trigger ]", timeout_s=60)
        assert trigger.exit_code == 0 or subject.name == "local-landlock"

    subject.run(test)
    assert not Path("/usr/bin/trajectile-canary").exists() and not Path("/etc/trajectile-canary").exists()


@needs("limits")
def test_limits_hold(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        hog = "x=x; while :; do x=$x$x$x$x; done"
        result = await sandbox.exec(hog, timeout_s=60)
        assert result.exit_code == 137 and not result.timed_out
        many = await said(sandbox, "for n in $(seq 200); do sleep 5 & done 2>&1 | head -c 1000; true")
        assert "Resource temporarily unavailable" in many
        await asyncio.sleep(0.5)
        assert await said(sandbox, "echo on") == "on\n"

    subject.run(test, sandbox_memory="256m", sandbox_pids=60)
