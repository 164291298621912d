"""run_batch's way through one shard: lease, resume, prompts, batch file, and an honest exit status."""

import asyncio
import logging
from collections import Counter
from pathlib import Path

import msgspec

from trajectile.agent.episode import EpisodeSettings
from trajectile.agent.events import log_wait
from trajectile.agent.prefill import load_prefill
from trajectile.agent.preflight import model_settings
from trajectile.configuration.settings import read_settings
from trajectile.errors import FatalError, MachineError, UserError
from trajectile.model.client import ModelClient
from trajectile.model.serving.sharing import ServerDied
from trajectile.notes import counted
from trajectile.planning.inventory import remember_batch, shard_ids
from trajectile.rows import PromptRow
from trajectile.run_folder.batch import Manifest, ManifestShard, is_complete, rows_to_run, write_batch
from trajectile.run_folder.checkpoint import update_checkpoint
from trajectile.run_folder.identity import Identity, read_identity
from trajectile.run_folder.ids import Id, make_id
from trajectile.run_folder.journal import FAILURE, records
from trajectile.run_folder.lease import Lease, LeaseLost, kept, living_owner
from trajectile.run_folder.mishaps import stops_the_run
from trajectile.run_folder.paths import RunFolder
from trajectile.run_folder.stop import invocation, mark_stop, stopped
from trajectile.run_folder.times import Clock, read_times
from trajectile.sandbox.factory import make_backend
from trajectile.shard.engine import Overspent, ShardRun, Stopped
from trajectile.shard.signals import ignore_signals, stopping_on_signals
from trajectile.shard.walltime import walltime
from trajectile.tools.distributions import Distribution
from trajectile.tools.registry import load_toolsets
from trajectile.tools.tool import States

FRUITLESS_ATTEMPTS = 2
FRUITLESS = (
    f"the last {FRUITLESS_ATTEMPTS} attempts at this shard finished no prompt, so this start of the run makes no more. "
    "What ended them is in their logs, which were shown when they failed; the next start tries again"
)
log = logging.getLogger(__name__)


class Execution:
    """One run of run_batch on one shard."""

    def __init__(self, folder: RunFolder, number: int, manifest: Path) -> None:
        self.folder = folder
        self.number = number
        self.settings = read_settings(folder)
        self.identity = _read_identity(folder)
        self.planned = _planned(folder, manifest, number)
        self.lease = Lease(folder.shard_lease(number))
        self.backend = make_backend(self.settings, folder)
        self.states = States()

    async def run(self) -> int:
        """Attempt all owed prompts and write the batch file; return the exit status."""
        with stopping_on_signals() as caught:
            try:
                if holder := living_owner(self.lease.path):
                    log.info("waiting for %s, which is making this shard", holder)
                await self.lease.wait()
                await self._run_owed()
                return 0
            except (FatalError, Stopped, OSError) as error:
                return self._stopped(error)
            except LeaseLost as error:
                log.error("stopped: %s", error)
                return 1
            except asyncio.CancelledError:
                log.warning("stopped by signal %d; finished prompts are kept", caught[0])
                return 128 + caught[0]
            finally:
                self.lease.release()

    def _stopped(self, error: Exception) -> int:
        if self._stops_the_run(error) and mark_stop(self.folder, str(error)):
            error = self._said_elsewhere()
        log.error("stopped: %s", error)
        return 1

    def _stops_the_run(self, error: Exception) -> bool:
        if isinstance(error, MachineError | ServerDied):
            return stops_the_run(self.folder, self.lease.owner)
        return isinstance(error, FatalError | Overspent)

    def _said_elsewhere(self) -> Stopped:
        """The start of the run says the reason as its last words: Snakemake shows the logs of all that failed."""
        return Stopped(f"nothing can be run now; the last lines of the run say why, and {self.folder.stop} does")

    async def _run_owed(self) -> None:
        if is_complete(self.folder, self.number):
            return  # another copy of this shard was first
        withdrawn = {bytes.fromhex(row) for row in self.planned.withdrawn}
        rows = rows_to_run(self.folder, self.number, withdrawn)
        if rows:
            if stopped(self.folder):
                raise self._said_elsewhere()
            if read_times(self.folder.times(self.number)).fruitless_in(invocation(self.folder)) >= FRUITLESS_ATTEMPTS:
                raise Stopped(FRUITLESS)
            await self._run(rows)
        indices = write_batch(self.folder, self.number)
        ignore_signals()
        try:
            remember_batch(self.folder, self.number)
            update_checkpoint(self.folder, self.number, indices)
        except OSError as error:
            log.warning("the batch is complete, but not all that describes it: %s", error)
        log.info("batch %d: %d rows", self.number, len(indices))

    async def _run(self, rows: list[PromptRow]) -> None:
        if left := await asyncio.to_thread(self.backend.reap):
            log.info("removed what dead owners left: %d sandboxes", left)
        clock = Clock(self.folder.times(self.number), invocation(self.folder))
        async with kept(self.lease), model_settings(self.settings, self.folder) as model:
            client = ModelClient(model, on_wait=log_wait)
            shared, limits = self._shared(client), await asyncio.to_thread(walltime, self.settings.walltime_margin)
            shard = ShardRun(self.folder, self.number, shared, self.lease, clock, self._earlier(), limits)
            log.info(
                "shard %d: %s to run, up to %d at once. %s",
                self.number,
                counted(len(rows), "prompt"),
                self.settings.concurrency,
                self.backend.describe(),
            )
            try:
                await shard.run(rows)
            finally:
                await self.states.close()
                await client.aclose()
                self.backend.close()
                log.info("shard %d: %d finished, %d failed", self.number, shard.finished, shard.failed)

    def _shared(self, client: ModelClient) -> EpisodeSettings:
        return EpisodeSettings(
            settings=self.settings,
            batch_num=self.number,
            settings_digest=self.identity.settings_digest,
            distribution=Distribution(self.settings.distribution, self.identity.chances),
            prefill=load_prefill(self.settings.prefill_messages_file),
            model=client,
            open_sandbox=self.backend.open,
            toolsets=load_toolsets(self.settings, self.identity.mcp_tools),
            states=self.states,
        )

    def _earlier(self) -> Counter[Id]:
        """Count the failed attempts at each row: those the plan knew of, and those since, from this shard's ledger."""
        counts = Counter({bytes.fromhex(row): count for row, count in self.planned.failed.items()})
        for failure in records(self.folder.ledger(self.number), FAILURE):
            row = make_id(failure.prompt_key, failure.ordinal)
            counts[row] = max(counts[row], failure.attempt)
        return counts


def _read_identity(folder: RunFolder) -> Identity:
    if identity := read_identity(folder):
        return identity
    raise UserError(f"{folder.run_json} is missing; start the run with snakemake")


def _planned(folder: RunFolder, manifest: Path, number: int) -> ManifestShard:
    plan = msgspec.json.decode(manifest.read_bytes(), type=Manifest)
    shard = plan.shards.get(str(number))
    if shard is None and folder.journal(number).exists():
        # a process of an earlier start finished it while this one began; Snakemake took its batch file away
        return ManifestShard(0, [row.hex() for row in shard_ids(folder, number)])
    if shard is None:
        raise UserError(f"shard {number} is not in {manifest.name}: the plan has nothing to run for it")
    return shard
