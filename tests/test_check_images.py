"""The step check_images: what it looks at, what it reports, and that a missing image ends no run."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import check_images as step
import msgspec
import pytest
from click.testing import CliRunner, Result
from helpers import Job
from sandbox_contract import engines
from scripted_server.fixture import ScriptedServer
from test_images import Folder
from trajectile.planning.image_check import CheckedImage, check_images, summary
from trajectile.sandbox.images import Images


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAJECTILE_CACHE", str(tmp_path / "cache"))


def check(job: Job, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.chdir(job.root)
    digest = job.planned.digest
    files = [job.folder.manifest(digest), job.folder.images(digest)]
    options = ["--run_folder", "data/r", "--manifest", str(files[0]), "--report", str(files[1])]
    return CliRunner().invoke(step.main, options)


def report(job: Job) -> dict[str, CheckedImage]:
    content = job.folder.images(job.planned.digest).read_bytes()
    return msgspec.json.decode(content, type=dict[str, CheckedImage])


def test_all_images_are_seen_to_and_each_failure_is_said_once(tmp_path: Path) -> None:
    store, said = Folder(tmp_path, seconds=0.1), list[str]()
    wanted = Counter({"a": 3, "bad": 2, "b": 1})
    checked = asyncio.run(check_images(Images(store, "missing", "s"), wanted, said.append))
    assert list(checked) == ["a", "bad", "b"]
    assert checked["bad"] == CheckedImage(2, reason="no such image")
    assert checked["a"].prompts == 3 and "digest of a" in checked["a"].digest
    assert [line for line in said if "bad" in line and "cannot" in line] == [
        "2 prompts cannot run: image bad cannot be had: no such image"
    ]
    assert any(line.startswith("images: 0 of 3 seen to; ") for line in said)
    assert summary(checked.values()) == "2 images ready, 1 cannot be had: 2 prompts will fail and stay owed"


def test_a_sandbox_without_images_has_nothing_to_check(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = check(Job(tmp_path, server, ["a"]), monkeypatch)
    assert done.exit_code == 2 and "sandbox: local keeps no images" in done.output


def test_no_engine_is_one_sentence(tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    done = check(Job(tmp_path, server, ["a"], sandbox="docker"), monkeypatch)
    assert done.exit_code == 2
    [line] = done.output.splitlines()
    assert "no container engine answers" in line


@pytest.fixture
def images() -> list[str]:
    if problem := engines.problem(None):
        pytest.skip(problem)
    return [engines.image(os.environ.get("DOCKER_HOST"), mark) for mark in engines.MARKS]


@pytest.mark.docker
def test_images_of_owed_prompts_are_reported_and_kept_in_run_json(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, images: list[str]
) -> None:
    rows: list[Any] = [
        "default",
        {"prompt": "other", "image": images[1]},
        {"prompt": "none", "image": "127.0.0.1:9/x:1"},
    ]
    job = Job(tmp_path, server, rows, sandbox="docker", sandbox_image=images[0])
    done = check(job, monkeypatch)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == "2 images ready, 1 cannot be had: 1 prompt will fail and stay owed"
    ids = {name: engines.client(None).images.get(name).id for name in images}
    assert {name: found.digest for name, found in report(job).items() if found.digest} == ids
    assert "127.0.0.1:9" in report(job)["127.0.0.1:9/x:1"].reason
    assert json.loads(job.folder.run_json.read_bytes())["images"] == ids
    job.plan()
    assert json.loads(job.folder.run_json.read_bytes())["images"] == ids


@pytest.mark.parametrize(("sandbox", "listed"), [("docker", True), ("local", False)])
def test_a_dry_run_lists_the_step_where_images_are_needed(tmp_path: Path, sandbox: str, listed: bool) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "a"}\n')
    snakefile = Path(step.__file__).parents[1] / "Snakefile"
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(snakefile), "-n", "--cores", "1", "--config"]
    config = ["dataset_file=p.jsonl", "run_name=r", "model=m", "base_url=http://127.0.0.1:9/v1", f"sandbox={sandbox}"]
    done = subprocess.run([*command, *config], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ("rule check_images" in done.stdout + done.stderr) == listed
    assert not (tmp_path / "data").exists()
