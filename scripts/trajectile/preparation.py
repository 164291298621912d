"""Before a run: from the configuration to the plan, reading much and writing nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trajectile.errors import UserError
from trajectile.identity import Identity, read_identity, settle
from trajectile.inventory import failed_attempts, take_inventory
from trajectile.notes import Notes, counted
from trajectile.plan import Plan, make_plan
from trajectile.prefill import load_prefill
from trajectile.run_folder import RunFolder
from trajectile.schema import schema
from trajectile.settings import Settings, load_settings
from trajectile.tools.distributions import Distribution, choose, load, missing, offered
from trajectile.tools.registry import TOOLSETS

DISTRIBUTIONS_FILE = Path(__file__).parents[2] / "config" / "distributions.yaml"


class Offer(NamedTuple):
    """The distribution that prompts are drawn from, and the toolsets that were left out of it."""

    distribution: Distribution
    dropped: list[str]


class PreparedRun(NamedTuple):
    """All that is decided before anything runs."""

    settings: Settings
    folder: RunFolder
    identity: Identity | None
    offer: Offer
    plan: Plan
    notes: Notes


def check_run_settings(given: Settings) -> tuple[Settings, RunFolder, Identity | None, Offer]:
    """Check settings against the run, the distributions and the files they name; a UserError says what to mend."""
    folder = RunFolder(given.folder)
    load_prefill(given.prefill_messages_file)
    identity = read_identity(folder)
    settings = settle(given, identity)
    return settings, folder, identity, make_offer(settings)


def make_offer(settings: Settings) -> Offer:
    """Reduce the distribution to the toolsets that work here; a UserError lists what is missing."""
    distributions = load(DISTRIBUTIONS_FILE)
    left_out = missing(choose(distributions, settings.distribution), TOOLSETS)
    on_missing: Any = settings.missing_toolsets
    return Offer(offered(distributions, settings.distribution, TOOLSETS, on_missing), left_out)


def prepare_run(config: dict[str, Any], arguments: Sequence[str] = ()) -> PreparedRun:
    """Check the configuration, the toolsets and the dataset, and plan the run. A UserError says what to mend.

    `arguments` are those of the command line that the configuration came with, if it did.
    """
    settings = load_settings(config)
    refuse_misread_name(settings.run_name, arguments)
    return prepare(settings)


def prepare(given: Settings) -> PreparedRun:
    """As prepare_run, from settings that were read."""
    settings, folder, identity, offer = check_run_settings(given)
    inventory = take_inventory(
        folder, settings.dataset_path, on_bad_row=settings.on_bad_row, max_samples=settings.max_samples
    )
    refuse_images(settings, inventory.dataset.notes)
    plan = make_plan(
        inventory, failed_attempts(folder), batch_size=settings.batch_size, max_attempts=settings.max_attempts
    )
    return PreparedRun(settings, folder, identity, offer, plan, inventory.dataset.notes)


def refuse_misread_name(run_name: str, arguments: Sequence[str]) -> None:
    """Raise a UserError where Snakemake's --config made another name of digits: 007 would be run 7."""
    typed = [text.removeprefix("run_name=") for text in arguments if text.startswith("run_name=")]
    if typed and typed[-1] != run_name and typed[-1].replace("_", "").lstrip("+0") == run_name.lstrip("0"):
        quoted = f"--config 'run_name=\"{typed[-1]}\"'"
        raise UserError(f"run_name: Snakemake reads {typed[-1]} as the number {run_name}. Quote it: {quoted}")


def refuse_images(settings: Settings, notes: Notes) -> None:
    """Raise a UserError where rows name an image and the sandbox runs none."""
    if settings.sandbox != "local" or not notes.images:
        return
    others = [name for name in schema()["properties"]["sandbox"]["enum"] if name != "local"]
    use = f"Set sandbox to {' or '.join(others)}, or take" if others else "This version has no other sandbox: take"
    raise UserError(
        f"dataset_file: {counted(notes.images, 'row')} of {settings.dataset_file} name an image (the first is number "
        f"{notes.image_line}), which sandbox: local cannot run. {use} the columns image and docker_image out."
    )
