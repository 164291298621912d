"""The engine of one shard: runs the owed prompts side by side and makes each finished row durable."""

import asyncio
import logging
import shutil
import time
from collections import Counter, deque
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from trajectile.agent.episode import EpisodeSettings, run_episode
from trajectile.agent.events import begin_prompt
from trajectile.errors import OWN_FAULTS, FatalError, PromptError
from trajectile.model.jsontext import clean
from trajectile.rows import PromptRow, Trajectory
from trajectile.run_folder.ids import Id, make_id
from trajectile.run_folder.journal import Appender, Failure, encode
from trajectile.run_folder.lease import HEARTBEAT_S, Lease, LeaseLost
from trajectile.run_folder.paths import RunFolder
from trajectile.run_folder.times import Clock
from trajectile.shard.descriptors import room_for
from trajectile.shard.tally import Tally
from trajectile.shard.walltime import Walltime

DISK_RESERVE_BYTES = 16 << 20
FIRST_BEAT_S = 1.0
OUT_OF_TIME = (
    "the time of this job is over; what is finished is kept, and the next attempt goes on from there. Jobs get more "
    "time by --set-resources run_batch:runtime=MINUTES"
)
log = logging.getLogger(__name__)


class Stopped(Exception):
    """The shard takes no more prompts, those in flight having ended; the message says why."""


class Overspent(Stopped):
    """The whole run takes no more prompts: what it may cost is spent."""


class ShardRun:
    """Runs prompts of one shard, appending to its journal and ledger while its lease holds."""

    def __init__(
        self,
        folder: RunFolder,
        number: int,
        shared: EpisodeSettings,
        lease: Lease,
        clock: Clock,
        earlier: Counter[Id],
        walltime: Walltime | None = None,
    ) -> None:
        self.folder = folder
        self.shared = shared
        self.lease = lease
        self.number = number
        self.earlier = earlier
        self.walltime = walltime
        self.finished = self.failed = 0
        self._in_a_row = 0
        self._said: set[str] = set()
        self._rows: deque[PromptRow] = deque()
        self._stop = self._overspent = ""
        self._tally = Tally(folder, number, shared, clock)
        self._journal = Appender(folder.journal(number))
        self._ledger: Appender | None = None  # most shards need none, and each plan opens them all

    async def run(self, rows: Iterable[PromptRow]) -> None:
        """Attempt all rows, the least failed first. FatalError, LeaseLost or Stopped: some were not attempted."""
        self._rows.extend(sorted(rows, key=lambda row: self.earlier[make_id(row.prompt_key, row.ordinal)]))
        self._beat()
        heartbeat = asyncio.create_task(self._heartbeat())
        try:
            await self._work_beside(heartbeat)
        finally:
            heartbeat.cancel()
            self._journal.close()
            if self._ledger:
                self._ledger.close()
            self._beat()
        if self._rows:
            raise (Overspent if self._overspent else Stopped)(self._stop)

    async def _work_beside(self, heartbeat: "asyncio.Task[None]") -> None:
        """Run the workers to their end; whatever ends one of them, or the heartbeat, ends all."""
        workers = [asyncio.create_task(self._worker()) for _ in range(self._at_once())]
        together = asyncio.gather(*workers)
        both: set[asyncio.Future[Any]] = {together, heartbeat}
        try:
            give_up = self.walltime and max(0.0, self.walltime.give_up - time.time())
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED, timeout=give_up)
            if not done:
                raise Stopped(OUT_OF_TIME)
            for task in done:
                task.result()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(together, *workers, return_exceptions=True)

    def _at_once(self) -> int:
        wanted = min(self.shared.settings.concurrency, len(self._rows))
        count = room_for(wanted)
        if count < wanted:
            log.warning("%d prompts at once, not %d: the limit of open files (ulimit -Hn) is too low", count, wanted)
        return count

    async def _worker(self) -> None:
        while self._rows and not self._must_stop():
            await self._attempt(self._rows.popleft())

    def _must_stop(self) -> bool:
        free = shutil.disk_usage(self.folder.root).free
        if free < DISK_RESERVE_BYTES:
            self._stop = f"the disk of {self.folder.root} has {free >> 20} MB left; free some space and run again"
        if self.walltime and time.time() >= self.walltime.last_start:
            self._stop = OUT_OF_TIME
        self._overspent = self._tally.overspent()
        self._stop = self._stop or self._overspent
        return bool(self._stop)

    async def _attempt(self, row: PromptRow) -> None:
        begin_prompt(row, self.shared.settings.log_prefix_chars)
        self._tally.running += 1
        try:
            await self._run_one(row)
        finally:
            self._tally.running -= 1

    async def _run_one(self, row: PromptRow) -> None:
        try:
            trajectory = await run_episode(row, self.shared)
            line = encode(trajectory)
        except PromptError as error:
            await self._record_failure(row, error.kind, str(error))
        except FatalError:
            raise
        except Exception as error:
            log.exception("prompt %d: unexpected error", row.prompt_index)
            await self._record_failure(row, "internal_error", f"{type(error).__name__}: {error}")
        else:
            await self._record_row(trajectory, line)

    async def _record_row(self, trajectory: Trajectory, line: bytes) -> None:
        self.lease.check()
        await self._journal.append(line)
        self.finished += 1
        self._in_a_row = 0
        self._tally.finish(trajectory)
        log.info("prompt %d: %s after %d calls", trajectory.prompt_index, trajectory.end_reason, trajectory.api_calls)

    async def _record_failure(self, row: PromptRow, kind: str, message: str) -> None:
        self.lease.check()
        attempt = self.earlier[make_id(row.prompt_key, row.ordinal)] + 1
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        ids = (row.prompt_index, row.prompt_key, row.ordinal, self.number)
        self._ledger = self._ledger or Appender(self.folder.ledger(self.number))
        await self._ledger.append(encode(Failure(*ids, attempt, kind, clean(message), now)))
        self.failed += 1
        self._in_a_row += kind not in OWN_FAULTS
        log.warning("prompt %d: failed (%s): %s", row.prompt_index, kind, self._first_time(message))
        if self._in_a_row == self.shared.settings.max_consecutive_failures:
            self._stop = (
                f"{self._in_a_row} prompts in a row failed, the last one with {kind}: {message}. Mend the cause and "
                "run again; max_consecutive_failures sets how many may fail in a row"
            )

    def _first_time(self, message: str) -> str:
        """Return a message, less of one that was said before: what an engine says of an image can be long."""
        if message in self._said:
            return "as said above"
        self._said.add(message)
        return message

    async def _heartbeat(self) -> None:
        """Beat often at first, so that a watcher soon sees something."""
        pause = FIRST_BEAT_S
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, HEARTBEAT_S)
            self.lease.beat()
            self._tally.beat()

    def _beat(self) -> None:
        """Note the state, unless another process keeps the shard's time by now."""
        with suppress(LeaseLost):
            self.lease.check()
            self._tally.beat()
