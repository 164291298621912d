"""Before a run: from the configuration to the plan, reading much and writing nothing."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from trajectile.agent.prefill import load_prefill
from trajectile.configuration.schema import schema
from trajectile.configuration.settings import Settings, load_settings
from trajectile.dataset.files import unit_of
from trajectile.errors import UserError
from trajectile.notes import Notes, counted
from trajectile.planning.inventory import Inventory, failed_attempts, take_inventory
from trajectile.planning.offer import Offer, make_offer
from trajectile.planning.plan import Plan, make_plan
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
    return prepare(settings)


def prepare(given: Settings) -> PreparedRun:
    """As prepare_run, from settings that were read."""
    folder = RunFolder(given.folder)
    load_prefill(given.prefill_messages_file)
    identity = read_identity(folder)
    settings = settle(given, identity)
    offer = make_offer(settings, identity)
    inventory = take_inventory(
        folder, settings.dataset_path, on_bad_row=settings.on_bad_row, max_samples=settings.max_samples
    )
    refuse_images(settings, inventory.dataset.notes)
    plan = make_plan(
        inventory, failed_attempts(folder), batch_size=settings.batch_size, max_attempts=settings.attempts_allowed
    )
    return PreparedRun(settings, folder, identity, offer, plan, inventory.dataset.notes, _superseded(inventory, plan))


def _superseded(inventory: Inventory, plan: Plan) -> int:
    finished = sum(len(shard.finished) if shard.journal else len(shard.batch or ()) for shard in inventory.shards)
    return finished - (plan.prompts - len(plan.owed) - len(plan.given_up))


def refuse_misread_name(run_name: str, arguments: Sequence[str]) -> None:
    """Raise a UserError where Snakemake's --config made another name of digits: 007 would be run 7."""
    named = [text.removeprefix("--config=").partition("run_name=") for text in arguments]
    typed = [name for before, found, name in named if found and not before]
    if typed and typed[-1] != run_name:
        raise UserError(
            f"run_name: Snakemake's --config reads {typed[-1]} as {run_name}, which would be another run. Choose "
            f'another name, or give it in a file: run_name: "{typed[-1]}" in config/config.yaml or under --configfile.'
        )


def refuse_images(settings: Settings, notes: Notes) -> None:
    """Raise a UserError where rows name an image and the sandbox runs none."""
    if settings.sandbox != "local" or not notes.images:
        return
    others = [name for name in schema()["properties"]["sandbox"]["enum"] if name != "local"]
    use = f"Set sandbox to {' or '.join(others)}, or take" if others else "This version has no other sandbox: take"
    first = f"the first is {unit_of(settings.dataset_path)} {notes.image_line}"
    raise UserError(
        f"dataset_file: {settings.dataset_file}: {counted(notes.images, 'row')} with an image ({first}), which "
        f"sandbox: local cannot run. {use} the columns image and docker_image out."
    )
