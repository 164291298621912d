"""Carries out the plan's cut: shard files for the new shards, and the manifest that the shards read."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import jsonlines
import msgspec

from trajectile.dataset.prompts import read_prompts
from trajectile.errors import UserError
from trajectile.planning.inventory import Inventory
from trajectile.planning.plan import CUT_DIGITS, Plan, Shard, make_plan
from trajectile.rows import PromptRow
from trajectile.run_folder.batch import Manifest, ManifestShard
from trajectile.run_folder.ids import Id, Ids, make_id, remember
from trajectile.run_folder.lease import START_TIME_SLACK_S, read_owner
from trajectile.run_folder.paths import RunFolder, replacing, write_atomic


def plan_again(
    folder: RunFolder,
    inventory: Inventory,
    failed: Counter[Id],
    digest: str,
    *,
    batch_size: int,
    max_attempts: int | None,
) -> Plan | None:
    """Return the plan whose cut `digest` names, None where more changed than what earlier starts' processes ended."""
    ended = list(_ended_since_start(folder, inventory))
    for count in range(len(ended) + 1):
        plan = make_plan(inventory, failed, batch_size=batch_size, max_attempts=max_attempts, late=ended[:count])
        if plan.digest[:CUT_DIGITS] == digest[:CUT_DIGITS]:
            return plan._replace(digest=digest)
    return None


def _ended_since_start(folder: RunFolder, inventory: Inventory) -> Iterator[int]:
    """Yield the shards with a batch file that is younger than the process which makes the run, the youngest first."""
    owner = read_owner(folder.lease)
    begun = [shard.number for shard in inventory.shards if shard.batch is not None and shard.given]
    times = {number: folder.batch(number).stat().st_mtime for number in begun if owner}
    for number in sorted(times, key=lambda number: -times[number]):
        if owner and times[number] >= owner.started - START_TIME_SLACK_S:
            yield number


def write_shards(
    folder: RunFolder, plan: Plan, dataset_file: Path, *, on_bad_row: str, max_samples: int | None
) -> None:
    """Write the files of the plan's new shards, and the manifest."""
    prompts = read_prompts(dataset_file, on_bad_row=on_bad_row, max_samples=max_samples)
    _write_new(folder, [shard for shard in plan.shards if shard.new], prompts)
    write_atomic(folder.manifest(plan.digest), msgspec.json.encode(_manifest(plan)))


def _write_new(folder: RunFolder, shards: list[Shard], prompts: Iterator[PromptRow]) -> None:
    """Stream the dataset once; new shards hold rows in dataset order, one after the other."""
    for shard in shards:
        wanted = dict.fromkeys(shard.rows)
        with (
            replacing(folder.shard(shard.number)) as out,
            jsonlines.Writer(out, dumps=msgspec.json.encode) as writer,
        ):
            writer.write_all(_take(wanted, prompts))
        remember(folder, folder.shard(shard.number), Ids(shard.rows, ""))


def _take(wanted: dict[Id, None], prompts: Iterator[PromptRow]) -> Iterator[PromptRow]:
    while wanted:
        row = next(prompts, None)
        if row is None:
            raise UserError("the dataset changed while it was being split. Run again.")
        if (key := make_id(row.prompt_key, row.ordinal)) in wanted:
            del wanted[key]
            yield row


def _manifest(plan: Plan) -> Manifest:
    return Manifest(plan.digest, {str(shard.number): _manifest_shard(shard) for shard in plan.shards})


def _manifest_shard(shard: Shard) -> ManifestShard:
    withdrawn = [row.hex() for row in shard.withdrawn]
    return ManifestShard(len(shard.rows), withdrawn, {row.hex(): count for row, count in shard.failed.items()})
