"""Before a run: from the configuration to the plan, reading much and writing nothing."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from trajectile.agent.prefill import load_prefill
from trajectile.configuration.settings import Settings, load_settings
from trajectile.notes import Notes
from trajectile.planning.inventory import Inventory, failed_attempts, take_inventory
from trajectile.planning.offer import Offer, earlier_offer, make_offer
from trajectile.planning.plan import Plan, make_plan
from trajectile.planning.refusals import COLLECT, refuse_dataset, refuse_images, refuse_misread_name, refuse_unbegun
from trajectile.planning.settling import settle
from trajectile.run_folder.identity import Identity, read_identity
from trajectile.run_folder.paths import RunFolder


class PreparedRun(NamedTuple):
    """All that is decided before anything runs. `superseded` finished rows stand for no row of the dataset."""

    settings: Settings
    folder: RunFolder
    identity: Identity | None
    offer: Offer
    plan: Plan
    notes: Notes
    superseded: int = 0


def prepare_run(config: dict[str, Any], arguments: Sequence[str] = ()) -> PreparedRun:
    """Check the configuration, the toolsets and the dataset, and plan the run. A UserError says what to mend.

    `arguments` are those of the command line that the configuration came with, if it did.
    """
    settings = load_settings(config)
    refuse_misread_name(settings.run_name, arguments)
    return prepare(settings, arguments)


def prepare(given: Settings, arguments: Sequence[str] = ()) -> PreparedRun:
    """As prepare_run, from settings that were read."""
    folder = RunFolder(given.folder)
    refuse_dataset(given)
    load_prefill(given.prefill_messages_file)
    identity = read_identity(folder)
    refuse_unbegun(folder, identity, arguments)
    settings = settle(given, identity)
    inventory = take_inventory(
        folder, settings.dataset_path, on_bad_row=settings.on_bad_row, max_samples=settings.max_samples
    )
    refuse_images(settings, inventory.dataset.notes)
    plan = make_plan(
        inventory, failed_attempts(folder), batch_size=settings.batch_size, max_attempts=settings.attempts_allowed
    )
    offer = _offer(settings, identity, runs_prompts=bool(plan.owed) and COLLECT not in arguments)
    return PreparedRun(settings, folder, identity, offer, plan, inventory.dataset.notes, _superseded(inventory, plan))


def _offer(settings: Settings, identity: Identity | None, *, runs_prompts: bool) -> Offer:
    if identity and not runs_prompts and identity.frozen.get("distribution") == settings.distribution:
        return earlier_offer(settings, identity)
    return make_offer(settings, identity)


def _superseded(inventory: Inventory, plan: Plan) -> int:
    finished = sum(len(shard.finished) if shard.journal else len(shard.batch or ()) for shard in inventory.shards)
    return finished - (plan.prompts - len(plan.owed) - len(plan.given_up))
