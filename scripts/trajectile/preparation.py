"""Before a run: from the configuration to the plan, reading much and writing nothing."""

from pathlib import Path
from typing import Any, NamedTuple

from trajectile.identity import Identity, read_identity, settle
from trajectile.inventory import failed_attempts, take_inventory
from trajectile.plan import Plan, make_plan
from trajectile.prefill import load_prefill
from trajectile.run_folder import RunFolder
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


def prepare_run(config: dict[str, Any]) -> PreparedRun:
    """Check the configuration, the toolsets and the dataset, and plan the run. A UserError says what to mend."""
    settings, folder, identity, offer = check_run_settings(load_settings(config))
    return PreparedRun(settings, folder, identity, offer, plan_run(settings, folder))


def plan_run(settings: Settings, folder: RunFolder) -> Plan:
    """Plan a run from its dataset and its folder as they are now."""
    inventory = take_inventory(
        folder, settings.dataset_path, on_bad_row=settings.on_bad_row, max_samples=settings.max_samples
    )
    failed = failed_attempts(folder)
    return make_plan(inventory, failed, batch_size=settings.batch_size, max_attempts=settings.max_attempts)
