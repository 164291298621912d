"""From start to end: many at once, cancelled, killed, dead, and nothing left of any."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from trajectile.rows import PromptRow
from trajectile.sandbox.base import Sandbox, SandboxDied

from sandbox_contract.subjects import KEY, Subject, gone, running, said

SCRIPTS = Path(__file__).parents[2] / "scripts"


def test_forty_at_once_leave_nothing(subject: Subject) -> None:
    mark = f"9{os.getpid()}"
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
    """S21: a living owner's sandboxes are left alone."""
    mark = f"5{os.getpid()}"
    paths = os.pathsep.join([str(SCRIPTS), str(SCRIPTS.parent / "tests")])
    command = [sys.executable, "-c", OWNER_PROGRAM, subject.name, str(subject.root), mark]
    owner = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths})
    while len(running(f"sleep\0{mark}")) < 2:
        assert owner.poll() is None
    backend = subject.backend()
    assert backend.reap() == 0
    owner.kill()
    owner.wait()
    backend.reap()
    assert gone(f"sleep\0{mark}") and gone(str(subject.root))
    backend.reap()
    backend.close()
    assert subject.left() == []
