"""Case S18: a command past its deadline dies with all that it started, and nothing else does."""

import asyncio
import os
import time

import pytest
from trajectile.sandbox.base import Sandbox

from sandbox_contract.subjects import Subject, gone, running, said


@pytest.fixture
def mark(subject: Subject) -> str:
    """An argument of sleep by which the processes of a test are found from outside."""
    return f"{os.getpid()}{abs(hash(subject.name)) % 10_000:04}"


def test_deadline_kills_the_whole_tree(subject: Subject, mark: str) -> None:
    """With children that double-fork, start sessions of their own and clear their environment."""

    async def test(sandbox: Sandbox) -> None:
        await sandbox.exec("export KEEP=1", timeout_s=60)
        start = time.monotonic()
        tree = f"(setsid sleep {mark} &); env -i setsid /bin/sleep {mark} & sleep {mark} & wait"
        result = await sandbox.exec(f"export KEEP=2; echo part; {tree}", timeout_s=2)
        assert 2 <= time.monotonic() - start < 30
        assert result.timed_out and result.output == b"part\n"
        assert running(mark) == []
        assert await said(sandbox, "echo $KEEP") == "1\n"

    subject.run(test)


@pytest.mark.needs("limits")
def test_what_forks_faster_than_it_is_killed_dies_too(subject: Subject, mark: str) -> None:
    async def test(sandbox: Sandbox) -> None:
        storm = f"breed() {{ ( sleep 0.01 {mark}; breed ) & ( breed ) & }}; breed 2>/dev/null; sleep 600"
        start = time.monotonic()
        assert (await sandbox.exec(storm, timeout_s=2)).timed_out
        assert time.monotonic() - start < 20
        assert await said(sandbox, "echo on") == "on\n"
        assert running(mark) == []

    subject.run(test, sandbox_pids=100)


def test_deadline_leaves_other_commands_alone(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        beside = asyncio.ensure_future(sandbox.exec("sleep 4; echo done", timeout_s=60, persist=False))
        await sandbox.exec("(sleep 3; echo later >f) & echo", timeout_s=60)
        assert (await sandbox.exec("sleep 100", timeout_s=0.5)).timed_out
        assert (await beside).output == b"done\n"
        assert await sandbox.read_file("f") == b"later\n"

    subject.run(test)


def test_cancelling_kills_the_tree_and_the_sandbox_goes_on(subject: Subject, mark: str) -> None:
    async def test(sandbox: Sandbox) -> None:
        task = asyncio.ensure_future(sandbox.exec(f"sleep {mark} & sleep {mark}", timeout_s=None))
        while len(running(f"sleep\0{mark}")) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert running(mark) == []
        assert await said(sandbox, "echo on") == "on\n"

    subject.run(test)


def test_cancelling_at_any_instant_leaves_nothing(subject: Subject, mark: str) -> None:
    async def test(sandbox: Sandbox) -> None:
        await said(sandbox, "true")
        for pause in (0, 0.001, 0.01, 0.03, 0.06, 0.1):
            task = asyncio.ensure_future(sandbox.exec(f"setsid sleep {mark}", timeout_s=None))
            await asyncio.sleep(pause)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert running(mark) == []
        assert await said(sandbox, "echo on") == "on\n"

    subject.run(test)


def test_a_command_without_its_mark_outlives_its_deadline_and_not_its_prompt(subject: Subject, mark: str) -> None:
    """Marks are for containers; a local sandbox knows what a command started by its descent."""

    async def test(sandbox: Sandbox) -> None:
        hidden = f"echo 999 >/proc/self/oom_score_adj; exec sleep {mark}"
        assert (await sandbox.exec(f"(setsid sh -c '{hidden}' &); sleep {mark}", timeout_s=2)).timed_out
        assert len(running(f"sleep\0{mark}")) == subject.in_container
        assert await said(sandbox, "echo on") == "on\n"

    subject.run(test)
    assert gone(mark)


def test_leftovers_run_on_until_the_sandbox_closes(subject: Subject, mark: str) -> None:
    async def test(sandbox: Sandbox) -> None:
        await said(sandbox, "true")
        start = time.monotonic()
        assert await said(sandbox, f"echo started; sleep {mark} & (sleep 0.5; echo x; echo y >f) &") == "started\n"
        assert time.monotonic() - start < 30
        # its output had somewhere to go
        assert await said(sandbox, "until [ -s f ]; do sleep 0.1; done; cat f") == "y\n"
        assert running(mark)

    subject.run(test)
    assert gone(mark)


def test_orphans_are_not_kept_as_zombies(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        await said(sandbox, "for n in $(seq 30); do (sleep 0.1 &); done; sleep 0.5")
        end = time.monotonic() + 10
        while await said(sandbox, "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '") != "0\n":
            assert time.monotonic() < end

    if subject.sees_host or subject.name == "local-landlock":
        pytest.skip("it shows this machine's processes, or none")
    subject.run(test)
