"""What the Snakefile asks of the library: the plan as lists of files, and the start and end of a run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from trajectile.errors import FatalError, UserError
from trajectile.lease import Lease
from trajectile.preparation import PreparedRun, prepare_run
from trajectile.run_folder import RunFolder
from trajectile.settings import Settings, load_settings

NO_SHARD = "(?!)"
_leases: list[Lease] = []


@contextmanager
def worded_as(kind: type[Exception]) -> Iterator[None]:
    """Turn errors that tell the user what to do into errors of `kind`, which Snakemake prints without a traceback."""
    try:
        yield
    except (UserError, FatalError) as error:
        raise kind(str(error)) from None


def prepare(config: dict[str, Any], is_main_process: bool) -> tuple[Settings, PreparedRun | None]:
    """Return the settings, and in the process that the user started the planned run too."""
    if not is_main_process:
        return load_settings(config), None
    run = prepare_run(config)
    return run.settings, run


class Targets:
    """The plan as the rules see it. Without a plan, in a job of its own process, any shard number may be asked for."""

    def __init__(self, settings: Settings, run: PreparedRun | None) -> None:
        folder = RunFolder(settings.folder)
        plan = run.plan if run else None
        shards = plan.shards if plan else []
        self._reasons = {str(shard.number): shard.reason for shard in shards}
        self.digest = plan.digest if plan else ""
        self.results_digest = plan.results_digest if plan else ""
        self.manifest = str(folder.manifest(self.digest or "{plan}"))
        self.owed_batches = [str(folder.batch(shard.number)) for shard in shards]
        self.all_batches = [str(folder.batch(number)) for number in (plan.batches if plan else ())]
        self.shard_pattern = ("|".join(self._reasons) or NO_SHARD) if plan else r"\d+"

    def reason_for(self, wildcards: Mapping[str, str]) -> str:
        """Say why a shard is owed; in a job of its own process nobody asks."""
        return self._reasons.get(wildcards["shard"], "")


def begin(run: PreparedRun) -> None:
    """Take the run's lease and check what can be checked before anything is paid for."""
    from trajectile.start import begin_run

    _leases.append(begin_run(run))


def end() -> None:
    """Give the run's lease back."""
    while _leases:
        _leases.pop().release()
