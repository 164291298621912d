"""Runs Snakemake on this workflow as a child, and sees that signals reach it and its shards."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import FrameType

import msgspec

from trajectile.command_line.placement import Placement
from trajectile.configuration.frozen import prompt_again
from trajectile.configuration.settings import Settings
from trajectile.console import say
from trajectile.errors import UserError
from trajectile.planning.refusals import COLLECT
from trajectile.planning.workflow import SHOWN_BY_ANOTHER, is_dry_run
from trajectile.progress.screen import Screen, screen
from trajectile.run_folder.lease import living_owner
from trajectile.run_folder.owners import living_shards
from trajectile.run_folder.paths import RunFolder

SNAKEFILE = Path(__file__).parents[3] / "Snakefile"
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
POLL_S = 0.2
SHARED = Path(".snakemake")  # in the folder of the run, where Snakemake keeps its own


def run_workflow(settings: Settings, placement: Placement, api_key: str = "") -> int:
    """Run the workflow, collect the results where a shard failed, and return the exit status (128+n after signal n).

    `api_key` is seen by the environment of Snakemake alone.
    """
    arguments = placement.arguments
    if not SNAKEFILE.is_file():
        raise UserError(f"the workflow is not beside the library ({SNAKEFILE}); install with: pip install -e .")
    folder = RunFolder(settings.folder)
    if owner := living_owner(folder.lease):
        raise UserError(f"run {settings.run_name} is being made by {owner}. Wait for it, or end that process.")
    with _config_file(settings) as config:
        child = _Child(config, folder, _environment(api_key), not is_dry_run(arguments), placement.elsewhere)
        before = _stamp(folder.settings_json), _stamp(folder.trajectories)
        status = child.run(arguments)
        if not status or _stamp(folder.settings_json) == before[0]:
            return status
        if _stamp(folder.trajectories) in (None, before[1]):
            child.run(["--cores", "1", COLLECT], shows=False)
    there = f" -- {shlex.join(arguments)}" if placement.elsewhere else ""
    again = (
        f"{sys.argv[0]} --run_name={settings.run_name} --resume{there}{prompt_again(settings.ephemeral_system_prompt)}"
    )
    kept = "the results so far are" if folder.trajectories.exists() else "what is finished is kept, without results,"
    say(f"{kept} in {folder.root}. To go on: {again}")
    return status


def _stamp(path: Path) -> int | None:
    """Return what changes when a file is replaced, None where there is none."""
    with suppress(FileNotFoundError):
        return path.stat().st_mtime_ns
    return None


def _environment(api_key: str) -> dict[str, str]:
    """Return the child's environment: the steps call `python`, which is to be this one."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    key = {"TRAJECTILE_API_KEY": api_key} if api_key else {}
    return {**os.environ, "PATH": path, SHOWN_BY_ANOTHER: "1", **key}


@contextmanager
def _config_file(settings: Settings) -> Iterator[Path]:
    """Settings travel in a file that jobs on nodes can read too: Snakemake logs its command line."""
    SHARED.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(suffix=".json", prefix="trajectile-", dir=SHARED.absolute()) as file:
        file.write(msgspec.json.encode(settings))
        file.flush()
        yield Path(file.name)


class _Child:
    """Snakemake with the configuration of one run."""

    def __init__(
        self, config: Path, folder: RunFolder, environment: dict[str, str], shows: bool, elsewhere: bool
    ) -> None:
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE), "--configfile", str(config)]
        self._command = command
        self._folder = folder
        self._environment = environment
        self._shows = shows
        self._stop = signal.SIGINT if elsewhere else signal.SIGTERM

    def run(self, arguments: Sequence[str], *, shows: bool = True) -> int:
        """Run Snakemake to its end and return the exit status."""
        with self._screen(shows and self._shows) as screen:
            child = subprocess.Popen(
                [*self._command, *arguments, *screen.options(arguments)],
                env=self._environment,
                process_group=0,
                stdout=screen.output,
                stderr=screen.output and subprocess.STDOUT,
            )
            screen.repeat(child.stdout)
            with _forwarding(child, self._stop) as caught:
                status = self._wait(child, caught)
        return 128 + caught[0] if caught else min(abs(status), 1)

    def _screen(self, shows: bool) -> AbstractContextManager[Screen]:
        """Show the progress once this start has begun."""
        before = _stamp(self._folder.settings_json)
        return screen(self._folder, lambda: _stamp(self._folder.settings_json) != before, shows=shows)

    def _wait(self, child: "subprocess.Popen[bytes]", caught: list[int]) -> int:
        """Wait for Snakemake, which passes no signal on; shards that were just starting are told a little later."""
        told: set[int] = set()
        while True:
            with suppress(subprocess.TimeoutExpired):
                return child.wait(POLL_S)
            for pid in set(_shards_here(self._folder)) - told if caught else ():
                told.add(pid)
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGTERM)


@contextmanager
def _forwarding(child: "subprocess.Popen[bytes]", stop: signal.Signals) -> Iterator[list[int]]:
    """Pass signals on to Snakemake as `stop`; the list holds their numbers.

    At SIGTERM it starts nothing new and waits for what runs; at SIGINT it cancels what it gave to a scheduler.
    """
    caught: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        with suppress(ProcessLookupError):
            child.send_signal(stop)

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _shards_here(folder: RunFolder) -> list[int]:
    return [owner.pid for owner in living_shards(folder).values() if owner.host == socket.gethostname()]
