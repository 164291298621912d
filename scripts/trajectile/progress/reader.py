"""Reads how a run stands from its folder, again and again, each time only what is new."""

from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from trajectile.errors import UserError
from trajectile.planning.inventory import batch_ids
from trajectile.progress.follow import Changes, Lines
from trajectile.progress.pace import Pace
from trajectile.progress.standing import Standing
from trajectile.progress.wanted import Wanted
from trajectile.rows import Ordinal, PromptKey, Usage
from trajectile.run_folder.identity import Identity, read_identity
from trajectile.run_folder.ids import Id, make_id
from trajectile.run_folder.journal import FAILURE, Failure, decode
from trajectile.run_folder.lease import living_owner
from trajectile.run_folder.owners import living_shards
from trajectile.run_folder.paths import RunFolder
from trajectile.run_folder.times import Times, read_times


class _Metadata(msgspec.Struct):
    ordinal: Ordinal


class _FinishedRow(msgspec.Struct):
    prompt_key: PromptKey
    metadata: _Metadata


class _Failed(NamedTuple):
    attempts: int
    error: str


NEVER = _Failed(0, "")
FINISHED = msgspec.json.Decoder(_FinishedRow)


class RunReader:
    """Reads journals and ledgers from where it left off, batch files by their remembered keys; writes nothing."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        journal, failures = folder.root / "journal", folder.root / "failures"
        self._batches = Changes(folder.root, "batch_", ".jsonl")
        self._journals = Changes(journal, "shard_", ".jsonl")
        self._times = Changes(journal, "shard_", ".times")
        self._ledgers = Changes(failures, "shard_", ".jsonl")
        self._lines: dict[str, Lines] = defaultdict(Lines)
        self._counts: dict[int, int] = {}  # finished rows of shards that nobody works on
        self._open: dict[int, set[Id]] = defaultdict(set)
        self._states: dict[int, Times] = {}
        self._failed: dict[Id, _Failed] = {}  # what has no row, the latest last
        self._wanted = Wanted(folder)
        self._pace = Pace()

    def read(self) -> Standing:
        """Return how the run stands now."""
        self._read_ledgers()
        self._read_batches()
        self._read_journals()
        self._states |= {number: read_times(path) for number, path in self._times.changed()}
        identity = self._identity()
        failed = self._still_wanted(identity)
        dataset = identity.dataset if identity else {}
        prompts, superseded = int(dataset.get("prompts", 0)), int(dataset.get("superseded", 0))
        finished = sum(self._counts.values()) + sum(map(len, self._open.values()))
        done = min(prompts, max(0, finished - superseded))
        alive = living_shards(self.folder)
        usage = sum((state.usage for state in self._states.values()), Usage())
        owner = str(living_owner(self.folder.lease) or next(iter(alive.values()), ""))
        return Standing(
            prompts=prompts,
            done=done,
            running=sum(self._states[number].running for number in alive if number in self._states),
            waiting=sum(self._states[number].waiting for number in alive if number in self._states),
            failed=len(failed),
            given_up=_given_up(identity, failed, made=bool(owner)),
            discarded=sum(state.discarded for state in self._states.values()),
            usage=usage,
            rate=self._pace.rate(done, self._states.values()),
            last_error=failed[-1].error if failed else "",
            owner=owner,
        )

    def _still_wanted(self, identity: Identity | None) -> list[_Failed]:
        """Return what failed and has not left the dataset since, the latest last."""
        if not self._failed or not identity:
            return list(self._failed.values())
        wanted = self._wanted.among(self._failed.keys(), Path(identity.dataset["file"]))
        return [failed for row, failed in self._failed.items() if row in wanted]

    def _identity(self) -> Identity | None:
        with suppress(UserError):
            return read_identity(self.folder)
        return None

    def _read_ledgers(self) -> None:
        for number, path in self._ledgers.changed():
            for line in self._lines[f"failures {number}"].read(path):
                if failure := decode(line, FAILURE):
                    self._fail(make_id(failure.prompt_key, failure.ordinal), failure)

    def _fail(self, row: Id, failure: Failure) -> None:
        before = self._failed.pop(row, NEVER)
        error = f"prompt {failure.prompt_index}: {failure.kind}: {failure.message}"
        self._failed[row] = _Failed(before.attempts + 1, error)

    def _read_batches(self) -> None:
        for number, path in self._batches.changed():
            try:
                ids = set(batch_ids(self.folder, number)) if path.exists() else set()
            except OSError:
                continue  # replaced while it was read: it changes again
            if number in self._open:
                self._open[number] |= ids
            else:
                self._counts[number] = len(ids)
            self._forgive(ids)
        for number in self._counts.keys() - self._batches.known.keys():
            del self._counts[number]

    def _read_journals(self) -> None:
        for number, path in self._journals.changed():
            rows = (decode(line, FINISHED) for line in self._lines[f"journal {number}"].read(path))
            ids = {make_id(row.prompt_key, row.metadata.ordinal) for row in rows if row}
            if self._counts.pop(number, None) is not None:
                self._open[number] = set(batch_ids(self.folder, number))
            self._open[number] |= ids
            self._forgive(ids)
        for number in self._open.keys() - self._journals.known.keys():
            ids = self._open.pop(number)
            if number in self._batches.known:
                self._counts[number] = len(ids)

    def _forgive(self, ids: set[Id]) -> None:
        """What was tried again with success has not failed."""
        for row in self._failed.keys() & ids:
            del self._failed[row]


def _given_up(identity: Identity | None, failed: list[_Failed], *, made: bool) -> int:
    """Count what reached max_attempts; a start that retries those gives up nothing while it is `made`."""
    settings = identity.settings if identity else {}
    limit = settings.get("max_attempts")
    if not limit or (made and settings.get("retry_failed")):
        return 0
    return sum(each.attempts >= limit for each in failed)
