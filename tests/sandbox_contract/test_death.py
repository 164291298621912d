"""Cases S20 and S21: a sandbox that dies is a failure with its cause, a run that dies leaves nothing for ever."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import Job, wait_until
from helpers import kill as kill_process
from scripted_server.fixture import ScriptedServer
from trajectile.sandbox.base import Sandbox, SandboxDied

from sandbox_contract import endings
from sandbox_contract.endings import Ending
from sandbox_contract.subjects import SUBJECTS, Subject, gone, running, said


@pytest.fixture(params=endings.KINDS)
def ending(request: pytest.FixtureRequest, subject: Subject) -> Ending:
    kinds = endings.endings_of(subject)
    if request.param not in kinds:
        pytest.skip(f"{subject.name}: {request.param}: {endings.NO_SUCH[request.param]}")
    found = kinds[request.param]
    if found.settings and (reason := subject.lacks.get("limits")):
        pytest.skip(f"{subject.name}: {request.param}: {reason}")
    if found.settings and os.geteuid():
        pytest.skip("only root can make the kernel choose the first process")
    return found


def test_death_is_noticed_with_its_cause(subject: Subject, ending: Ending) -> None:
    """S20, while a command runs and at the next one, and for files."""

    async def test(sandbox: Sandbox) -> None:
        busy = asyncio.ensure_future(sandbox.exec("sleep 600", timeout_s=None))
        await asyncio.sleep(1)
        await asyncio.to_thread(ending.end, subject)
        if ending.command:
            with pytest.raises(SandboxDied):
                await sandbox.exec(ending.command, timeout_s=60)
        with pytest.raises(SandboxDied, match=ending.cause):
            await asyncio.wait_for(busy, 30)
        with pytest.raises(SandboxDied, match=ending.cause):
            await sandbox.read_file("/etc/passwd")

    subject.run(test, **ending.settings)


def test_an_idle_sandbox_that_died_is_noticed_by_the_next_command(subject: Subject) -> None:
    """S20."""
    ending = endings.endings_of(subject)["killed"]

    async def test(sandbox: Sandbox) -> None:
        await said(sandbox, "true")
        await asyncio.to_thread(ending.end, subject)
        with pytest.raises(SandboxDied, match=ending.cause):
            for _ in range(100):  # a part of it may be dying still
                await said(sandbox, "true")

    subject.run(test)


def test_a_shard_whose_sandbox_dies_and_which_is_killed_then(subject: Subject, tmp_path: Path) -> None:
    """S20: a failure, not a row, and no more model calls. S21: the next start removes what the killed one left."""
    mark = f"4{os.getpid()}{list(SUBJECTS).index(subject.name)}"
    call = {"name": "terminal", "arguments": {"command": f"sleep {mark}"}}
    ending = endings.endings_of(subject)["killed"]
    with ScriptedServer() as server:
        (tmp_path / "job").mkdir()
        job = Job(tmp_path / "job", server, ["a", "b"], **subject.settings)
        job.script({"regex": "", "replies": [{"reasoning": "r", "tool_calls": [call]}]})
        mine = replace(subject, root=job.folder.root)
        shard = job.start()
        wait_until(lambda: len(running(f"sleep\0{mark}")) == 2, "two prompts with a command each", 60)
        ending.end(mine)
        wait_until(job.failures, "the failure", 60)
        [failure] = job.failures()
        assert failure.kind == "sandbox_died" and ending.cause in failure.message
        assert job.journal() == [] and job.asked() == {"a": 1, "b": 1}
        kill_process(shard)
        job.script({"regex": "", "replies": [{"text": "done", "reasoning": "r"}]})
        assert job.run() == 0
        assert len(job.rows()) == 2 and "removed what dead owners left: 1 sandboxes" in job.said()
    assert gone(f"sleep\0{mark}") and mine.left() == []
