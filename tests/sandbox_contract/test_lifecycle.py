"""From start to end: many at once, cancelled, killed, and nothing left of any."""

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers import wait_until
from trajectile.errors import PromptError
from trajectile.rows import PromptRow
from trajectile.sandbox.base import Sandbox, SandboxDied

from sandbox_contract import engines
from sandbox_contract.subjects import ENGINES, KEY, Subject, gone, running, said

SCRIPTS = Path(__file__).parents[2] / "scripts"


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_forty_at_once_leave_nothing(subject: Subject) -> None:
    """S21: no network for each of them either."""
    mark, before, files = f"9{os.getpid()}", subject.engine_wide(), open_files()
    backend = subject.backend()

    async def one(number: int) -> str:
        sandbox = backend.open(PromptRow(number, KEY, number, []))
        try:
            await sandbox.start()
            await said(sandbox, f"setsid sleep {mark} & disown; export N={number}", 120)
            return await said(sandbox, "echo $N", 120)
        finally:
            await sandbox.close()

    async def all_of_them() -> list[str]:
        return list(await asyncio.gather(*map(one, range(40))))

    assert asyncio.run(all_of_them()) == [f"{number}\n" for number in range(40)]
    backend.close()
    assert gone(mark) and subject.left() == []
    assert subject.engine_wide() == before and open_files() < files + 40


def test_cancelling_the_start_at_any_instant_leaves_nothing(subject: Subject) -> None:
    backend = subject.backend()

    async def one(pause: float) -> None:
        sandbox = backend.open(PromptRow(0, KEY, 0, []))
        task = asyncio.ensure_future(sandbox.start())
        await asyncio.sleep(pause)
        task.cancel()
        await asyncio.wait([task])
        await sandbox.close()

    async def all_of_them() -> None:
        for pause in (0, 0.005, 0.02, 0.1, 0.3):
            await one(pause)

    asyncio.run(all_of_them())
    backend.close()
    assert subject.left() == []


def test_a_closed_sandbox_runs_nothing(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        beside = asyncio.ensure_future(sandbox.exec("sleep 600", timeout_s=None))
        await asyncio.sleep(0.5)
        await sandbox.close()
        with pytest.raises(SandboxDied):
            await beside
        with pytest.raises(SandboxDied):
            await said(sandbox, "true")

    subject.run(test)


OWNER_PROGRAM = """
import asyncio, sys
from pathlib import Path
from sandbox_contract.subjects import SUBJECTS

async def main():
    subject = SUBJECTS[sys.argv[1]]()[1](Path(sys.argv[2]))
    async with subject.opened() as sandbox:
        await sandbox.exec(f"setsid sleep {sys.argv[3]} & sleep {sys.argv[3]}", timeout_s=None)

asyncio.run(main())
"""


def test_what_a_killed_owner_leaves_ends_and_is_reaped(subject: Subject) -> None:
    """S21: of the dead run only, and while its owner lives nothing of it."""
    mark = f"5{os.getpid()}"
    paths = os.pathsep.join([str(SCRIPTS), str(SCRIPTS.parent / "tests")])
    command = [sys.executable, "-c", OWNER_PROGRAM, subject.name, str(subject.root), mark]
    owner = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths})
    wait_until(lambda: owner.poll() is not None or len(running(f"sleep\0{mark}")) >= 2, "the commands", 60)
    backend, another = subject.backend(), replace(subject, root=subject.root.parent / "another").backend()
    assert backend.reap() == 0
    owner.kill()
    owner.wait()
    assert another.reap() == 0 and [*subject.folders(), *subject.containers()] != []
    backend.reap()
    assert gone(f"sleep\0{mark}") and gone(str(subject.root))
    backend.reap()
    for each in (backend, another):
        each.close()
    assert subject.left() == []


def test_anonymous_volumes_go_with_their_container(subject: Subject) -> None:
    """S21: closed, and reaped after the owner's death."""
    if subject.name not in ENGINES:
        pytest.skip("images of engines alone have volumes")
    image, before = engines.changed(subject.engine, "volume", "VOLUME /data"), subject.engine_wide()

    async def test(sandbox: Sandbox) -> None:
        assert await said(sandbox, "echo x >/data/x; ls /data") == "x\n"
        assert len(subject.engine_wide() - before) == 1

    subject.run(test, image=image)
    assert subject.engine_wide() == before
    dead = subprocess.Popen(["true"])
    dead.wait()
    owner = {"run": str(subject.root), "host": os.uname().nodename, "pid": str(dead.pid), "started": "1"}
    labels = {f"trajectile.{name}": value for name, value in owner.items()}
    engines.client(subject.engine).containers.create(image, ["true"], labels=labels)
    assert subject.backend().reap() == 1 and subject.engine_wide() == before


def unstartable(subject: Subject) -> list[dict[str, Any]]:
    """Return options of sandboxes that do not start, for each way in which they do not."""
    if subject.name in ENGINES:
        return [{"sandbox_user": "nosuchuser"}, {"image": engines.changed(subject.engine, "bare", "ENV PATH=/none")}]
    if subject.name == "modal":
        return [{"image": "refused:1"}, {"image": "missing:1"}]
    if subject.name == "singularity":
        (subject.root.parent / "empty").mkdir()
        return [{"image": str(subject.root.parent / "empty") + "/"}]
    subject.root.mkdir()
    subject.scratch.write_text("in the way")
    return [{}]


def test_a_sandbox_that_cannot_start_is_a_failure_and_leaves_nothing(subject: Subject) -> None:
    """S21: what `docker run` answers with 125."""

    async def test(sandbox: Sandbox) -> None:
        await said(sandbox, "true")

    async def opened(options: dict[str, Any]) -> None:
        async with subject.opened(**options) as sandbox:
            await test(sandbox)

    for options in unstartable(subject):
        with pytest.raises(PromptError) as failure:
            asyncio.run(opened(options))
        assert failure.value.kind in ("sandbox_start", "image_unavailable", "sandbox_died") and str(failure.value)
        subject.scratch.unlink() if subject.scratch.is_file() else None
        assert subject.left() == []
