"""What is asked of Modal, through its own SDK, by a stand-in; tests/sandbox_contract has what a sandbox there does."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from modal_standin import shared
from trajectile.sandbox.base import Sandbox
from trajectile.sandbox.local import isolation

if problem := shared.problem():
    pytest.skip(problem, allow_module_level=True)

from modal_proto import api_pb2
from sandbox_contract.subjects import SUBJECTS, Subject, said
from trajectile.sandbox.modal.sandbox import mebibytes


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    return SUBJECTS["modal"]()[1](tmp_path / "run")


def request_for(subject: Subject) -> Any:
    """What the one sandbox was made by."""
    [living] = subject.containers()
    return shared.running().control.machines[living].request


@pytest.mark.parametrize(("network", "kind"), [("none", "BLOCKED"), ("bridge", "OPEN")])
def test_what_is_asked_of_modal(subject: Subject, network: str, kind: str) -> None:
    async def test(sandbox: Sandbox) -> None:
        request = request_for(subject)
        resources, access = request.definition.resources, request.definition.network_access
        assert (resources.memory_mb, resources.memory_mb_max) == (3072, 3072)
        assert (resources.milli_cpu, resources.milli_cpu_max) == (1500, 1500)
        assert api_pb2.NetworkAccess.NetworkAccessType.Name(access.network_access_type) == kind
        assert not request.secret_sources and not request.definition.secret_ids
        tags = {tag.tag_name: tag.tag_value for tag in request.tags}
        assert tags["run"] == str(subject.root) and tags["pid"] == str(os.getpid())
        assert sandbox.image_digest.startswith("im-")

    subject.run(test, sandbox_network=network, sandbox_memory="3g", sandbox_cpus=1.5)


def test_nothing_of_the_callers_environment_is_sent(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "canary-in-env")

    async def test(sandbox: Sandbox) -> None:
        assert "canary" not in await said(sandbox, "env; cat /proc/*/environ")
        assert b"canary" not in request_for(subject).SerializeToString()

    subject.run(test)


@pytest.mark.parametrize(("memory", "expected"), [("2g", 2048), ("512m", 512), ("512K", 1), ("1G", 1024)])
def test_memory_in_mebibytes(memory: str, expected: int) -> None:
    assert mebibytes(memory) == expected


UNKNOWN_ACCOUNT = """
import asyncio
from trajectile.errors import FatalError
from trajectile.sandbox.modal.sandbox import ModalSandbox

try:
    asyncio.run(ModalSandbox("python:3.12", output_limit=1000).start())
except FatalError as error:
    print(error)
"""


def test_an_account_that_modal_does_not_know_stops_the_run(subject: Subject, tmp_path: Path) -> None:
    env = {**os.environ, "MODAL_TOKEN_ID": "unknown", "HOME": str(tmp_path)}
    env["PYTHONPATH"] = str(Path(isolation.__file__).parents[3])
    done = subprocess.run([sys.executable, "-c", UNKNOWN_ACCOUNT], env=env, capture_output=True, text=True, check=False)
    assert "Token ID not recognised" in done.stdout, done.stderr
    assert "modal token new" in done.stdout
