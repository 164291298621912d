"""What the Snakefile asks of the library: the plan as lists of files, and the start and end of a run.

Each job on a cluster reads the Snakefile twice and plans nothing, so what planning needs is imported where it plans.
"""

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trajectile.configuration.settings import Settings, load_settings
from trajectile.console import say
from trajectile.errors import FatalError, UserError
from trajectile.planning.number_pattern import number_pattern
from trajectile.run_folder.paths import RunFolder

if TYPE_CHECKING:
    from trajectile.planning.preparation import PreparedRun
    from trajectile.run_folder.lease import Lease

WATCH_S = 0.5
PLAN = "TRAJECTILE_PLAN"  # the plan's digest, from the process that planned to its jobs
SHOWN_BY_ANOTHER = "TRAJECTILE_PROGRESS_SHOWN"  # set for a workflow whose parent shows the progress
DRY_FLAGS = re.compile("-[npFkq]*n[npFkq]*")  # -n among the short options that take no value, as in -np
EXPORT_OPTIONS = [*(name for name in Settings.__struct_fields__ if name.startswith("export_")), "seed"]
_leases: "list[Lease]" = []
_showing = ExitStack()


@contextmanager
def worded_as(kind: type[Exception]) -> Iterator[None]:
    """Turn errors that tell the user what to do into errors of `kind`, which Snakemake prints without a traceback."""
    try:
        yield
    except (UserError, FatalError) as error:
        raise kind(str(error)) from None


def prepare(config: dict[str, Any], is_main_process: bool) -> "tuple[Settings, PreparedRun | None]":
    """Return the settings, and in the process that the user started the planned run too; its jobs get the digest."""
    _offer_python()
    if not is_main_process:
        return load_settings(config), None
    from trajectile.planning.preparation import prepare_run

    run = prepare_run(config, sys.argv)
    os.environ[PLAN] = run.plan.digest
    if is_dry_run(sys.argv[1:]):
        _say_plan(run)
    return run.settings, run


def _say_plan(run: "PreparedRun") -> None:
    """Say what a start would: bad rows, and what there is to run where any prompt would be."""
    from trajectile.dataset.files import unit_of
    from trajectile.notes import remarks
    from trajectile.planning.estimate import estimate
    from trajectile.planning.refusals import COLLECT

    for remark in remarks(run.notes, unit_of(run.settings.dataset_path)):
        say(remark)
    if COLLECT not in sys.argv:
        say(estimate(run))


def _offer_python() -> None:
    """Let the steps, which call `python`, find this one, also where its environment was not activated."""
    folder, path = str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)
    if folder not in path.split(os.pathsep):
        os.environ["PATH"] = f"{folder}{os.pathsep}{path}"


def is_dry_run(arguments: Sequence[str]) -> bool:
    """Whether Snakemake's command line asks for a dry run, which it does not tell while it reads the Snakefile."""
    return any(text in ("--dry-run", "--dryrun") or DRY_FLAGS.fullmatch(text) for text in arguments)


class Targets:
    """The plan as the rules see it. Without a plan, in a job of its own process, any shard number may be asked for."""

    def __init__(self, settings: Settings, run: "PreparedRun | None") -> None:
        folder = RunFolder(settings.folder)
        plan = run.plan if run else None
        shards = plan.shards if plan else []
        self._reasons = {str(shard.number): shard.reason for shard in shards}
        self.digest = plan.digest if plan else _digest_of_head()
        self.results_digest = f"{plan.results_digest}{_last_collected(folder)}" if plan else ""
        self.manifest = str(folder.manifest(self.digest))
        self.images = str(folder.images(self.digest))
        self.images_to_check = [self.images] if settings.keeps_images and settings.preflight else []
        self.owed_batches = [str(folder.batch(shard.number)) for shard in shards]
        self.all_batches = [str(folder.batch(number)) for number in (plan.batches if plan else ())]
        self.formats = [name for name in settings.exports.split(",") if name]
        self.exports = [str(folder.export(name) / "summary.json") for name in self.formats]
        self.export_options = " ".join(f"--{name} {getattr(settings, name)}" for name in EXPORT_OPTIONS)
        self.shard_pattern = number_pattern([shard.number for shard in shards]) if plan else r"\d+"

    def reason_for(self, wildcards: Mapping[str, str]) -> str:
        """Say why a shard is owed; in a job of its own process nobody asks."""
        return self._reasons.get(wildcards["shard"], "")


def _last_collected(folder: RunFolder) -> str:
    """Name the last `collect`, whose results may be those of other settings; Snakemake keeps no record of it."""
    return folder.collected.read_text().strip() if folder.collected.exists() else ""


def _digest_of_head() -> str:
    """Return the digest of the plan that this job belongs to."""
    if PLAN not in os.environ:
        raise UserError(f"{PLAN} is not set: the executor does not pass the environment on to its jobs")
    return os.environ[PLAN]


def begin(run: "PreparedRun", *, asks_model: bool, give_up: Callable[[], None]) -> None:
    """Take the run's lease and, where prompts will run, check what can be checked before anything is paid for.

    `give_up` is called when a shard finds that nothing more can be run.
    """
    from trajectile.planning.start import begin_run

    _leases.append(begin_run(run, asks_model=asks_model))
    threading.Thread(target=_watch, args=(run.folder, give_up), daemon=True).start()
    if asks_model and os.environ.get(SHOWN_BY_ANOTHER) is None:
        from trajectile.progress.watch import Lines, beside

        _showing.enter_context(beside(run.folder, Lines()))


def _watch(folder: RunFolder, give_up: Callable[[], None]) -> None:
    """Wait for a fatal stop: thousands of shards need not start only to end before their first call."""
    from trajectile.run_folder.stop import stopped

    while not stopped(folder):
        time.sleep(WATCH_S)
    give_up()


def say_how_to_go_on(run: "PreparedRun") -> None:
    """After a run that failed, say why where nothing could be run, and what to do about shards without a batch."""
    from trajectile.run_folder.stop import stopped

    if reason := stopped(run.folder):
        say(f"stopped: {reason}")
    lacking = [shard.number for shard in run.plan.shards if not run.folder.batch(shard.number).exists()]
    if lacking:
        say(
            f"{len(lacking)} of {len(run.plan.shards)} shards are not finished; what they have is kept. To go on, run "
            "the same command again; for the results so far, add the target: snakemake collect"
        )


def end() -> None:
    """Show the progress a last time and give the run's lease back."""
    _showing.close()
    while _leases:
        _leases.pop().release()
