"""Images are fetched once a machine, and a failure is told to all who wait for it."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_engine import FakeEngine
from sandbox_contract import engines
from sandbox_contract.subjects import ENGINES
from sandbox_registry import Registry
from trajectile.errors import UserError
from trajectile.sandbox.docker.engine import Engine
from trajectile.sandbox.docker.images import DockerImages
from trajectile.sandbox.images import Found, Images, ImageStore, ImageUnavailable, Progress

# Of the registry, where an engine has to know it beforehand.
PORT = "TRAJECTILE_TEST_REGISTRY_PORT"
SCRIPTS = Path(__file__).parents[1] / "scripts"


class Folder(ImageStore):
    """Images are files; one is fetched by making it, which takes a while, or fails where the name says so.

    Each attempt leaves a line in `log`.
    """

    def __init__(self, folder: Path, seconds: float = 0.0) -> None:
        super().__init__()
        self.folder, self.seconds, self.log = folder, seconds, folder / "log"
        self.place = str(folder)

    def find(self, image: str) -> Found | None:
        path = self.folder / image
        return Found(str(path), path.read_text()) if path.exists() else None

    def fetch(self, image: str, progress: Progress) -> None:
        with self.log.open("a") as log:
            log.write(f"{image}\n")
        for part in range(5):
            progress(f"{part} of 5")
            time.sleep(self.seconds / 5)
        if image == "bad":
            raise ImageUnavailable(image, "no such image")
        (self.folder / image).write_text(f"digest of {image} {self.attempts()}")

    def attempts(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAJECTILE_CACHE", str(tmp_path / "cache"))


def ensure(images: Images, *names: str) -> list[str]:
    """Ask for all at once; the digests, or why there is none."""

    async def one(name: str) -> str:
        try:
            return (await images.ensure(name, lambda _: None)).digest
        except ImageUnavailable as error:
            return error.reason

    async def all_of_them() -> list[str]:
        return list(await asyncio.gather(*map(one, names)))

    return asyncio.run(all_of_them())


def test_missing_images_are_fetched_once(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    images = Images(store, "missing", "s")
    *firsts, other = ensure(images, *["a"] * 10, "b")
    assert len({*firsts}) == 1 and "digest of a" in firsts[0] and "digest of b" in other
    assert ensure(images, "a") == firsts[:1] and store.attempts() == 2


def test_never_fetches_nothing(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    (tmp_path / "here").write_text("digest")
    there, lacking = ensure(Images(store, "never", "s"), "here", "a")
    assert there == "digest" and "image_pull is never" in lacking and store.attempts() == 0


def test_always_fetches_once_in_a_start_of_the_run(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    assert ensure(Images(store, "always", "first"), "a", "a") == ["digest of a 1"] * 2
    assert ensure(Images(store, "always", "first"), "a") == ["digest of a 1"]
    assert ensure(Images(store, "always", "second"), "a") == ["digest of a 2"]


def test_a_failure_is_not_tried_again_in_the_same_start(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    assert ensure(Images(store, "missing", "first"), *["bad"] * 5) == ["no such image"] * 5
    assert ensure(Images(store, "missing", "first"), "bad") == ["no such image"] and store.attempts() == 1
    assert ensure(Images(store, "missing", "second"), "bad") == ["no such image"] and store.attempts() == 2


def test_few_are_fetched_at_once_and_progress_is_told(tmp_path: Path) -> None:
    store, told = Folder(tmp_path, seconds=0.5), list[str]()
    images = Images(store, "missing", "s")

    async def all_of_them() -> None:
        await asyncio.gather(*(images.ensure(f"i{n}", told.append) for n in range(6)))

    start = time.monotonic()
    asyncio.run(all_of_them())
    assert time.monotonic() - start >= 1 and told.count("4 of 5") == 6


def test_a_cancelled_fetch_ends_and_is_no_failure(tmp_path: Path) -> None:
    store = Folder(tmp_path, seconds=60)

    async def cancelled() -> None:
        task = asyncio.ensure_future(Images(store, "missing", "s").ensure("a", lambda _: None))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    start = time.monotonic()
    asyncio.run(cancelled())
    assert time.monotonic() - start < 30
    store.seconds = 0
    assert ensure(Images(store, "missing", "s"), "a") == ["digest of a 2"]


JOB_PROGRAM = """
import asyncio, sys
from pathlib import Path
from test_images import Folder, ensure
from trajectile.sandbox.docker.engine import Engine
from trajectile.sandbox.docker.images import DockerImages
from trajectile.sandbox.images import Images
store = DockerImages(Engine()) if sys.argv[1] == "docker" else Folder(Path(sys.argv[1]), 2)
print(ensure(Images(store, "missing", sys.argv[3]), sys.argv[2])[0])
"""


def jobs(count: int, *arguments: str) -> list[str]:
    """Run as many processes at once, each of which needs the image; what each got."""
    paths = os.pathsep.join([str(SCRIPTS), str(Path(__file__).parent)])
    command = [sys.executable, "-c", JOB_PROGRAM, *arguments]
    env = {**os.environ, "PYTHONPATH": paths}
    started = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return [process.communicate()[0].strip() for process in started]


@pytest.mark.parametrize(("image", "outcome"), [("a", "digest of a 1"), ("bad", "no such image")])
def test_twenty_jobs_make_one_attempt(tmp_path: Path, image: str, outcome: str) -> None:
    """H23."""
    assert jobs(20, str(tmp_path), image, "s") == [outcome] * 20
    assert Folder(tmp_path).attempts() == 1


@pytest.fixture(params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in ENGINES])
def registry(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """What the engine that DOCKER_HOST leads to meanwhile can pull from."""
    port = int(os.environ.get(PORT, 0))
    if request.param == "podman":
        if not (port and engines.podman()):
            pytest.skip(f"podman pulls over plain HTTP where it was started for that; {PORT} is not set")
        monkeypatch.setenv("DOCKER_HOST", engines.podman() or "")
    if problem := engines.problem(os.environ.get("DOCKER_HOST")):
        pytest.skip(problem)
    with Registry(engines.roots()["one"], seconds=1, port=port) as serving:
        yield serving
        for image in engines.client(None).images.list():
            if any(serving.host in tag for tag in image.tags):
                engines.client(None).images.remove(image.id, force=True)


def test_twenty_jobs_pull_one_image_once(registry: Registry) -> None:
    """H23, through a real engine and a registry."""
    outcomes = jobs(20, "docker", registry.image("first"), "s")
    assert set(outcomes) == {f"{registry.host}/group/image@{registry.digest}"}
    assert registry.asked["blobs"] == 2  # the layer and the configuration


def test_pulling_tells_how_far_it_is_and_failing_says_why(registry: Registry) -> None:
    told: list[str] = []
    images = Images(DockerImages(Engine()), "always", "t")
    asyncio.run(images.ensure(registry.image("second"), told.append))
    is_podman = os.environ.get("DOCKER_HOST") == engines.podman()  # which tells of what takes longer
    assert any("% of" in text or (is_podman and "Download" in text) for text in told)
    [reason] = ensure(images, registry.image("denied"))
    assert "denied" in reason or "not for you" in reason


@pytest.mark.parametrize(
    ("pull", "why"), [("breaks off", "broke off"), ("silent", "for 1 s"), ("silent from the start", "for 1 s")]
)
def test_a_pull_that_is_not_ended_is_an_image_that_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, pull: str, why: str
) -> None:
    told: list[str] = []
    with FakeEngine(pull) as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.address)
        images = Images(DockerImages(Engine(), silence_s=1), "missing", "s")
        with pytest.raises(ImageUnavailable, match=f"the engine .*{why}"):
            asyncio.run(images.ensure("a:1", told.append))
    assert told == ([] if "start" in pull else ["25% of 0 MB, Downloading"])


def test_a_cache_folder_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TRAJECTILE_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"nothing can be written in .*/file/.* TRAJECTILE_CACHE"):
        ensure(Images(Folder(tmp_path), "missing", "s"), "a")
