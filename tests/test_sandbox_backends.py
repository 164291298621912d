"""What a run asks of the singularity and modal backends besides running commands."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from container_images import archive, rootfs
from trajectile.configuration.settings import load_settings
from trajectile.errors import FatalError, PromptError, UserError
from trajectile.rows import PromptRow
from trajectile.run_folder.paths import RunFolder
from trajectile.sandbox import sif
from trajectile.sandbox.backend import Backend
from trajectile.sandbox.factory import make_backend

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
    report = made(tmp_path, "singularity", sandbox_memory="1g").describe()
    assert "no network" in report
    assert "1g of memory" in report or "NO limit" in report
    with pytest.raises(FatalError, match="sandbox_user"):
        made(tmp_path, "singularity", sandbox_user="nobody").check()
    with pytest.raises(FatalError, match="network"):
        made(tmp_path, "singularity", sandbox_network="nosuchnet").check()
    with pytest.raises(UserError, match="sandbox_mounts"):
        made(tmp_path, "singularity", sandbox_mounts="relative:/x")


def test_without_an_engine_the_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FatalError, match="needs apptainer or singularity"):
        made(tmp_path, "singularity").check()


def test_modal_refuses_what_it_does_not_have(tmp_path: Path) -> None:
    pytest.importorskip("modal", reason="the extra `modal` is not installed")
    made(tmp_path, "modal").check()
    assert "no network" in made(tmp_path, "modal").describe()
    assert "internet" in made(tmp_path, "modal", sandbox_network="bridge").describe()
    for config in ({"sandbox_network": "mine"}, {"sandbox_mounts": "/a:/b"}, {"sandbox_read_only": True}):
        with pytest.raises(FatalError, match=next(iter(config))):
            made(tmp_path, "modal", **config).check()
