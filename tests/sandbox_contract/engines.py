"""Container engines for tests: where they are, and images made of this machine's own programs."""

import atexit
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import docker
from container_images import archive, rootfs
from docker.errors import DockerException, NotFound

PODMAN = "TRAJECTILE_TEST_PODMAN"
ROOTS = "TRAJECTILE_TEST_ROOTS"
# The programs that a test starts use what this process made, and may be killed: they make nothing.
REPOSITORY = os.environ.setdefault("TRAJECTILE_TEST_REPOSITORY", f"trajectile-test-{os.getpid()}")
IS_FIRST = REPOSITORY.endswith(f"-{os.getpid()}")
PROGRAMS = [*rootfs.PROGRAMS, "find", "xargs", "mkfifo", "cmp"]
MARKS = ("one", "two")
_used: set[str | None] = set()


@cache
def problem(address: str | None) -> str:
    """Say why there is no engine at `address` (None for where DOCKER_HOST says), "" where there is."""
    try:
        client(address).ping()
    except (DockerException, OSError) as error:
        return f"no container engine answers at {address or 'DOCKER_HOST or the usual place'} ({error})"
    return ""


def client(address: str | None) -> docker.DockerClient:
    return docker.DockerClient(base_url=address, timeout=120) if address else docker.from_env(timeout=120)


def podman() -> str | None:
    return os.environ.get(PODMAN)


@cache
def roots() -> dict[str, Path]:
    """Return folders with a small Linux system each, told apart by /etc/mark."""
    if not IS_FIRST:
        return {mark: Path(os.environ[ROOTS]) / mark for mark in MARKS}
    folder = Path(tempfile.mkdtemp(prefix="trajectile-roots-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[ROOTS] = str(folder)
    return {mark: rootfs.make(folder / mark, mark, PROGRAMS) for mark in MARKS}


@cache
def image(address: str | None, mark: str) -> str:
    """Return an image with bash that an engine has from now on."""
    tag = f"{REPOSITORY}:{mark}"
    if not IS_FIRST:
        return tag
    if not _used:
        atexit.register(forget_all)
    _used.add(address)
    packed = archive.write(roots()[mark].parent / f"{mark}.tar", roots()[mark], tag, env=(f"IMAGE={mark}",))
    client(address).images.load(packed.read_bytes())
    packed.unlink()
    return tag


@cache
def changed(address: str | None, name: str, *changes: str) -> str:
    """Return the first image with lines of a Dockerfile such as VOLUME applied."""
    engine, tag = client(address), f"{REPOSITORY}:{name}"
    container = engine.api.create_container(image(address, "one"), ["true"])
    engine.api.commit(container["Id"], REPOSITORY, name, changes="\n".join(changes))
    engine.api.remove_container(container["Id"], v=True, force=True)
    return tag


def forget_all() -> None:
    """Take the images of these tests out of the engines."""
    while _used:
        engine = client(_used.pop())
        for found in engine.images.list(name=REPOSITORY):
            with suppress(NotFound):
                engine.images.remove(found.id, force=True)
