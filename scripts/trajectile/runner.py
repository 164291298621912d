"""Runs Snakemake on this workflow as a child, and sees that signals reach it and its shards."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import msgspec

from trajectile.errors import UserError
from trajectile.lease import living_owner
from trajectile.run_folder import RunFolder
from trajectile.settings import Settings

SNAKEFILE = Path(__file__).parents[2] / "Snakefile"
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run_workflow(settings: Settings, arguments: Sequence[str]) -> int:
    """Run the workflow, collect the results where a shard failed, and return the exit status (128+n after signal n)."""
    if not SNAKEFILE.is_file():
        raise UserError(f"the workflow is not beside the library ({SNAKEFILE}); install with: pip install -e .")
    with _config_file(settings) as config:
        status = _snakemake(settings, config, arguments)
        if status and not _is_dry(arguments) and not _has_results(settings):
            _snakemake(settings, config, ["collect", *arguments])
    return status


def _is_dry(arguments: Sequence[str]) -> bool:
    return bool({"-n", "--dry-run", "--dryrun"} & set(arguments))


def _has_results(settings: Settings) -> bool:
    folder = RunFolder(settings.folder)
    return not folder.run_json.exists() or folder.trajectories.exists()


@contextmanager
def _config_file(settings: Settings) -> Iterator[Path]:
    """Settings travel in a file: Snakemake logs its command line."""
    with tempfile.NamedTemporaryFile(suffix=".json", prefix="trajectile-") as file:
        file.write(msgspec.json.encode(settings))
        file.flush()
        yield Path(file.name)


def _snakemake(settings: Settings, config: Path, arguments: Sequence[str]) -> int:
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE), "--configfile", str(config)]
    child = subprocess.Popen([*command, *arguments], process_group=0)
    with _forwarding(child, RunFolder(settings.folder)) as caught:
        status = child.wait()
    return 128 + caught[0] if caught else min(abs(status), 1)


@contextmanager
def _forwarding(child: "subprocess.Popen[bytes]", folder: RunFolder) -> Iterator[list[int]]:
    """Pass signals on: first to Snakemake, which then starts nothing new, then to the shards of this run."""
    caught: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        with suppress(ProcessLookupError):
            child.send_signal(signal.SIGTERM)
        for pid in _living_shards(folder):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _living_shards(folder: RunFolder) -> Iterator[int]:
    for number in folder.numbers("journal", ".lease"):
        owner = living_owner(folder.shard_lease(number))
        if owner and owner.host == os.uname().nodename:
            yield owner.pid
