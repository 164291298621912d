"""What a run asks of the backends of containers besides running commands."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from container_images import archive, rootfs
from fake_engine import FakeEngine
from trajectile.configuration.settings import load_settings
from trajectile.errors import FatalError, MachineError, PromptError, UserError
from trajectile.rows import PromptRow
from trajectile.run_folder.paths import RunFolder
from trajectile.sandbox.backend import Backend
from trajectile.sandbox.factory import make_backend
from trajectile.sandbox.ownership import this_process
from trajectile.sandbox.singularity import apptainer, container, sif

NOBODY = 65534
needs_engine = pytest.mark.skipif(
    not (shutil.which("apptainer") or shutil.which("singularity")),
    reason="neither apptainer nor singularity is in PATH",
)


def made(folder: Path, sandbox: str, **config: Any) -> Backend:
    plain = {"dataset_file": "p.jsonl", "run_name": "r", "model": "m", "sandbox": sandbox}
    return make_backend(load_settings({**plain, **config}), RunFolder(folder / "run"))


def row(**fields: Any) -> PromptRow:
    return PromptRow(0, "00", 0, [], **fields)


async def said(backend: Backend, wanted: PromptRow, command: str) -> tuple[str, str]:
    """What a command prints in a prompt's sandbox, and the digest of its image."""
    sandbox = backend.open(wanted)
    try:
        await sandbox.start()
        return (await sandbox.exec(command, timeout_s=60)).output.decode(), sandbox.image_digest
    finally:
        await sandbox.close()


@pytest.mark.apptainer
@needs_engine
def test_each_row_runs_in_its_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAJECTILE_SIF", str(tmp_path / "sif"))
    root = rootfs.make(tmp_path / "root", "ours")
    saved = f"docker-archive:{archive.write(tmp_path / 'a.tar', root, 'made:here', ('COLOUR=blue',))}"
    backend = made(tmp_path, "singularity", sandbox_image=str(root))
    backend.check()
    assert backend.image_of(row()) == str(root)
    assert asyncio.run(said(backend, row(cwd="/work/a"), "pwd; cat /etc/mark")) == ("/work/a\nours\n", "")
    text, digest = asyncio.run(said(backend, row(image=saved), "cat /etc/mark; echo $COLOUR"))
    assert text == "ours\nblue\n"
    found = sif.SifStore(tmp_path / "sif").find(saved)
    assert found is not None
    assert found.digest == digest
    with pytest.raises(PromptError, match="no such file"):
        asyncio.run(said(backend, row(image=f"{tmp_path}/no.sif"), "true"))
    assert list((tmp_path / "run/scratch").iterdir()) == []
    assert backend.reap() == 0


@pytest.mark.apptainer
@needs_engine
def test_start_report_and_refusals(tmp_path: Path) -> None:
    report = made(tmp_path, "singularity").describe()
    assert "no network" in report
    assert "2g of memory, 1 CPU, 512 processes" in report or "NO limit" in report
    with pytest.raises(FatalError, match="network"):
        made(tmp_path, "singularity", sandbox_network="nosuchnet").check()
    with pytest.raises(UserError, match="sandbox_mounts"):
        made(tmp_path, "singularity", sandbox_mounts="relative:/x")


@pytest.mark.apptainer
@needs_engine
def test_a_limit_that_cannot_be_held_is_refused_in_the_engines_words(tmp_path: Path) -> None:
    """No machine has as many."""
    for refused in (
        lambda backend: backend.check(),
        lambda backend: backend.open(row()),  # where the check was left out
    ):
        with pytest.raises(FatalError, match=r"sandbox_cpus: 99999.* cannot be held to that here: .+ Leave it out"):
            refused(made(tmp_path, "singularity", sandbox_cpus=99999, sandbox_memory="1g"))


# Apptainer as a user has it whom the machine gives no cgroups; what it says is its own.
LIMITLESS = """#!/bin/sh
case "$*" in
--version) echo apptainer version 1.4.5 ;;
*--memory* | *--cpus* | *--pids-limit*)
    echo 'FATAL:   cannot use cgroups - rootless cgroups is not usable in fakeroot mode' >&2
    exit 255 ;;
esac
"""


def test_only_the_usual_limits_are_given_up_where_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "apptainer"
    program.write_text(LIMITLESS)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    apptainer.problem.cache_clear()
    usual = made(tmp_path, "singularity")
    usual.check()
    usual.open(row())
    assert "NO limit on memory, CPU and processes (cannot use cgroups" in usual.describe()
    for name, value in {"sandbox_memory": "2g", "sandbox_cpus": 1, "sandbox_pids": 512}.items():
        backend = made(tmp_path, "singularity", **{name: value})
        with pytest.raises(FatalError, match=rf"{name}: {value}.*rootless cgroups.*Leave it out.*sandbox to docker"):
            backend.check()
        assert "NO limit" in backend.describe()
    apptainer.problem.cache_clear()


NO_OVERLAY = """#!/bin/sh
case "$*" in *--overlay*) echo 'FATAL:   overlay: the upper layer is on nfs' >&2; exit 255 ;; esac
"""


def test_the_place_that_containers_write_to_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "apptainer").write_text(NO_OVERLAY)
    (tmp_path / "apptainer").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    apptainer.problem.cache_clear()
    with pytest.raises(MachineError, match=r"the upper layer is on nfs.*local disk: TRAJECTILE_SCRATCH names one"):
        made(tmp_path, "singularity").check()
    apptainer.problem.cache_clear()


LACKING = [
    *[("local", name) for name in ("memory", "cpus", "pids", "tmpfs", "read_only", "user", "mounts")],
    *[("singularity", name) for name in ("tmpfs", "user")],
    *[("modal", name) for name in ("pids", "tmpfs", "read_only", "user", "mounts")],
]
VALUES = {"cpus": 1, "pids": 100, "read_only": True, "user": "nobody", "mounts": "/a:/b"}


@pytest.mark.parametrize(("sandbox", "name"), LACKING, ids="-".join)
def test_what_a_kind_of_sandbox_lacks_is_refused_with_the_kinds_that_have_it(sandbox: str, name: str) -> None:
    plain = {"dataset_file": "p.jsonl", "run_name": "r", "model": "m", "sandbox": sandbox}
    load_settings(plain)
    with pytest.raises(UserError, match=f"sandbox_{name}: .* cannot be had with sandbox: {sandbox}; .* docker"):
        load_settings({**plain, f"sandbox_{name}": VALUES.get(name, "1g")})


def test_without_an_engine_the_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FatalError, match="needs apptainer or singularity"):
        made(tmp_path, "singularity").check()


def test_modal_refuses_what_it_does_not_have(tmp_path: Path) -> None:
    pytest.importorskip("modal", reason="the extra `modal` is not installed")
    made(tmp_path, "modal").check()
    assert "no network, 2g of memory, 1 CPU." in made(tmp_path, "modal").describe()
    assert "network bridge" in made(tmp_path, "modal", sandbox_network="bridge").describe()
    with pytest.raises(FatalError, match="Modal has none and bridge"):
        made(tmp_path, "modal", sandbox_network="mine").check()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder of a user without rights, within such a user's reach."""
    folder = Path(tempfile.mkdtemp())
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def without_rights() -> Iterator[None]:
    """Be no longer root, who can remove everything; nothing can be imported then."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("sandbox", ["local", "singularity"])
def test_folders_that_cannot_be_removed_are_named_and_stop_nothing(
    shared: Path, caplog: pytest.LogCaptureFixture, sandbox: str
) -> None:
    backend, parent = made(shared, sandbox), RunFolder(shared / "run").scratch
    host, pid, began = this_process()
    dead = [parent / f"{host}-{pid}-{began}0-{number}" for number in (1, 2)]
    with without_rights():
        for folder in dead:
            (folder / "home").mkdir(parents=True)
        parent.chmod(0o555)
        assert backend.reap() == 0
        assert [list(folder.iterdir()) for folder in dead] == [[], []], "what can go went, of each of them"
        parent.chmod(0o755)
        assert all(f"{folder} is left behind" in caplog.text for folder in dead) and "remove it as root" in caplog.text
        assert backend.reap() == 2 and list(parent.iterdir()) == []


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_keeper_that_cannot_be_started_costs_no_descriptors(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()

    async def start() -> None:
        before = open_files()
        with pytest.raises(FileNotFoundError):
            container.Container([str(tmp_path / "none")], {}, tmp_path)
        assert open_files() == before

    asyncio.run(start())


def test_an_engine_that_refuses_to_list_its_containers_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeEngine() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.address)
        assert made(tmp_path, "docker").reap() == 0


def test_variables_that_lead_to_no_engine_are_one_sentence_of_the_start(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "a"}\n')
    snakefile = Path(__file__).parents[1] / "Snakefile"
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(snakefile), "--cores", "1", "--config"]
    config = ["dataset_file=p.jsonl", "run_name=r", "model=m", "base_url=http://127.0.0.1:9/v1", "sandbox=docker"]
    env = {**os.environ, "DOCKER_HOST": "foo://bar"}
    done = subprocess.run([*command, *config], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert [line for line in done.stderr.splitlines() if "DOCKER_HOST" in line and "foo://bar" in line]


@pytest.mark.parametrize("address", ["foo://bar", "tcp://host:port", "tcp://[::1"])
def test_an_address_of_no_engine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(UserError, match="DOCKER_HOST"):
        made(tmp_path, "docker")


def test_certificates_that_are_not_there_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
    with pytest.raises(UserError, match="DOCKER_CERT_PATH"):
        made(tmp_path, "docker")
