"""SIF files from real builds: one for many askers, errors as the engine says them."""

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from container_images import archive, rootfs
from trajectile.sandbox.images import Images, ImageUnavailable
from trajectile.sandbox.singularity import sif

ENGINE = shutil.which("apptainer") or shutil.which("singularity")
needs_engine = [
    pytest.mark.apptainer,
    pytest.mark.skipif(not ENGINE, reason="neither apptainer nor singularity is in PATH"),
]
ASKER = """
import asyncio, sys
from pathlib import Path
from trajectile.sandbox.images import Images, ImageUnavailable
from trajectile.sandbox.singularity.sif import SifStore

def say(line):
    print("BUILDS")

try:
    print(asyncio.run(Images(SifStore(Path(sys.argv[2])), "missing", "start 1").ensure(sys.argv[1], say)).name)
except ImageUnavailable as error:
    print("FAILED", error)
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("saved")
    root = rootfs.make(folder / "root", "from an archive")
    return f"docker-archive:{archive.write(folder / 'image.tar', root, 'made:here', ('COLOUR=blue',))}"


def ensure(image: str, cache: Path, policy: str = "missing") -> tuple[Path, list[str]]:
    said: list[str] = []
    found = asyncio.run(Images(sif.SifStore(cache), policy, "").ensure(image, said.append))
    return Path(found.name), said


def asked_at_once(number: int, *arguments: str, env: "dict[str, str] | None" = None) -> list[str]:
    """What `number` processes say that all ask for the same image."""
    command = [sys.executable, "-c", ASKER, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(env or {})}
    askers = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(number)]
    return [asker.communicate(timeout=200)[0] for asker in askers]


@pytest.mark.parametrize("name", ["image.sif", "folder/"])
def test_files_and_folders_are_taken_as_they_are(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(ImageUnavailable, match="no such file or folder"):
        ensure(str(path), tmp_path / "cache")
    path.mkdir() if name.endswith("/") else path.write_bytes(b"")
    assert ensure(str(path), tmp_path / "cache") == (path, [])


def test_a_name_is_not_a_folder_that_happens_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "python").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ImageUnavailable, match="image_pull is never"):
        ensure("python", tmp_path / "cache", "never")


def test_a_changed_archive_is_another_image(tmp_path: Path) -> None:
    file = tmp_path / "a.tar"
    file.write_bytes(b"1")
    path = sif.SifStore(tmp_path).path
    first = path(f"docker-archive:{file}")
    assert path(f"docker-archive:{file}") == first
    file.write_bytes(b"12")
    assert path(f"docker-archive:{file}") != first
    assert path("docker://a/b") != path("docker://a-b")


def test_digest_of_a_file_that_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.sif"
    digests = []
    for data in (b"1", b"12"):
        file.write_bytes(data)
        found = sif.SifStore(tmp_path).find(str(file))
        assert found is not None
        digests.append(found.digest)
    assert digests == [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in (b"1", b"12")]


def test_the_users_own_note_of_a_digest_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "a.sif").write_bytes(b"1")
    (tmp_path / "a.sif.sha256").write_text("0000  a.sif\n")
    found = sif.SifStore(tmp_path / "cache").find(str(tmp_path / "a.sif"))
    assert found is not None and found.digest == f"sha256:{hashlib.sha256(b'1').hexdigest()}"


class TestBuilds:
    pytestmark = needs_engine

    def test_twenty_askers_one_build(self, tmp_path: Path, saved: str) -> None:
        """H23."""
        said = asked_at_once(20, saved, str(tmp_path))
        assert sum("BUILDS" in text for text in said) == 1
        path, later = ensure(saved, tmp_path, "never")
        assert later == []
        assert {text.splitlines()[-1] for text in said} == {str(path)}
        assert sorted(tmp_path.glob("*.sif")) == [path]
        assert list(tmp_path.glob(".*")) == []
        found = sif.SifStore(tmp_path).find(saved)
        assert found == (str(path), f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}")

    def test_twenty_askers_one_failure(self, tmp_path: Path, saved: str) -> None:
        missing = f"docker-archive:{tmp_path / 'nothing.tar'}"
        said = asked_at_once(20, missing, str(tmp_path / "cache"))
        assert sum("BUILDS" in text for text in said) == 1
        errors = {text.splitlines()[-1] for text in said}
        assert len(errors) == 1
        assert "no such file or directory" in errors.pop()

    def test_small_temporary_folder_is_named(self, tmp_path: Path, saved: str) -> None:
        if os.geteuid():
            pytest.skip("only root can mount a small folder")
        small = tmp_path / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", str(small)], check=True)
        try:
            said = asked_at_once(2, saved, str(tmp_path / "cache"), env={"APPTAINER_TMPDIR": str(small)})
        finally:
            subprocess.run(["umount", str(small)], check=True)
        assert all("no space left" in text and "APPTAINER_TMPDIR" in text for text in said)
        assert list((tmp_path / "cache").glob("*.sif")) == []

    def test_always_builds_anew_and_keeps_the_old_one_until_then(self, tmp_path: Path, saved: str) -> None:
        path, _ = ensure(saved, tmp_path)
        before = path.stat().st_ino
        assert ensure(saved, tmp_path)[0].stat().st_ino == before
        path, said = ensure(saved, tmp_path, "always")
        assert path.stat().st_ino != before
        assert said

    def test_a_killed_builder_leaves_nothing_in_the_way(self, tmp_path: Path, saved: str) -> None:
        cut = f".{sif.SifStore(tmp_path).path(saved).name}.0123"
        (tmp_path / cut).write_bytes(b"half a file")
        assert ensure(saved, tmp_path)[0].exists()
        assert not (tmp_path / cut).exists()
