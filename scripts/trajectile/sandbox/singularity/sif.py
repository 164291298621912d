"""Images as apptainer and singularity run them: SIF files, each built once in a folder that machines may share."""

import functools
import hashlib
import os
import re
import secrets
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trajectile.environment import passed
from trajectile.sandbox.images import Found, ImageStore, ImageUnavailable, Progress
from trajectile.sandbox.output import to_text
from trajectile.sandbox.singularity import apptainer

SOURCE = re.compile(r"(docker-archive|docker-daemon|oci-archive|oci):|[a-z]+://")
PATH = re.compile(r"~|\.{0,2}/|.*\.(sif|img|sqfs|squashfs)$")
NOISE = re.compile(r"(INFO|WARNING|VERBOSE|DEBUG):")
PROGRESS_S = 2.0
REASON_CHARS = 1000


class SifStore(ImageStore):
    """SIF files in `folder`, and what rows name by path: SIF files and image folders of the user's own.

    An image is such a path, a source that the engine can build from (`docker-archive:`, `docker-daemon:`, `docker://`
    and the like), or the name of an image in a registry.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.place = str(self.folder)
        self.locks = self.folder / "locks"

    def find(self, image: str) -> Found | None:
        path = self.path(image)
        return Found(str(path), self._digest(path)) if path.exists() else None

    def _digest(self, path: Path) -> str:
        """`sha256:…` of a SIF file, "" for a folder. A note of it is ours in our own folder alone."""
        if path.is_dir():
            return ""
        if path.parent == self.folder:
            with suppress(FileNotFoundError):
                return Path(f"{path}.sha256").read_text()
        state = path.stat()
        return _sha256_of_version(path, state.st_mtime_ns, state.st_size)

    def path(self, image: str) -> Path:
        """Where `image` is, or will be; an archive that has changed is another image."""
        if PATH.match(image):
            return Path(image).expanduser().absolute()
        identity = image
        if image.partition(":")[0].endswith("-archive"):
            with suppress(OSError):
                state = Path(image.partition(":")[2]).stat()
                identity += f" {state.st_size} {state.st_mtime_ns}"
        words = "-".join(re.findall(r"[A-Za-z0-9._]+", image))[-60:].strip("-.")
        return self.folder / f"{words}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}.sif"

    def fetch(self, image: str, progress: Progress) -> None:
        """Build under a name of our own, then rename: what runs from the old file is not disturbed."""
        if PATH.match(image):
            raise ImageUnavailable(image, "there is no such file or folder")
        target = self.path(image)
        for left in self.folder.glob(f".{target.name}.*"):
            left.unlink(missing_ok=True)
        part = self.folder / f".{target.name}.{secrets.token_hex(4)}"
        source = image if SOURCE.match(image) else f"docker://{image}"
        try:
            if reason := _build(source, part, progress):
                raise ImageUnavailable(image, reason)
            Path(f"{target}.sha256").write_text(_sha256(part))
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def _build(source: str, target: Path, progress: Progress) -> str:
    """What the engine said where it failed. It has the caller's environment: registry logins, APPTAINER_TMPDIR."""
    command = [apptainer.binary(), "build", "--force", str(target), source]
    with target.with_name(f"{target.name}.log").open("w+b") as log, _running(command, log.fileno()) as process:
        Path(log.name).unlink()
        while process.returncode is None:
            progress(f"building {target.name[1:].rpartition('.')[0]}")
            with suppress(subprocess.TimeoutExpired):
                process.wait(PROGRESS_S)
        log.seek(0)
        return _reason(to_text(log.read())) if process.returncode else ""


@contextmanager
def _running(command: list[str], output: int) -> Iterator["subprocess.Popen[bytes]"]:
    """A program that is killed with all it started where its use ends early."""
    process = subprocess.Popen(
        command,
        env=passed(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _reason(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip() and not NOISE.match(line.strip())]
    reason = "; ".join(lines)[-REASON_CHARS:] or "the engine gave no reason"
    hint = " (APPTAINER_TMPDIR names the folder that builds take place in)" if "no space left" in reason else ""
    return reason + hint


@functools.cache
def _sha256_of_version(path: Path, modified_ns: int, size: int) -> str:
    return _sha256(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
