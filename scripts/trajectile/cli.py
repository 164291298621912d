"""The command line: options become settings, settings become a run of the workflow."""

import os
import sys
from typing import Any

import click

from trajectile.console import explained
from trajectile.errors import UserError
from trajectile.identity import Identity, read_identity
from trajectile.options import setting_options
from trajectile.run_folder import RunFolder
from trajectile.settings import Settings, load_settings

REFERENCE_DEFAULTS = {"model": "anthropic/claude-sonnet-4.6", "distribution": "default"}
WORKERS = 4
EXAMPLE = "for example: --dataset_file=data/prompts.jsonl --batch_size=10 --run_name=my_run"


@click.command(context_settings={"max_content_width": 110})
@setting_options
@click.option("--num_workers", type=click.IntRange(min=1), default=WORKERS, show_default=True, help="Shards at once.")
@click.option("--resume", is_flag=True, help="Go on with a run; options that are not given are the run's own.")
@click.option("--dry-run", "--dry_run", "-n", is_flag=True, help="Show what would run and why; change nothing.")
@click.option("--list_distributions", is_flag=True, help="Print the toolset distributions and end.")
@click.option("--api_key", help="Put into the environment of the run as TRAJECTILE_API_KEY, and nowhere else.")
@click.argument("snakemake_options", nargs=-1, type=click.UNPROCESSED)
def main(
    num_workers: int,
    resume: bool,
    dry_run: bool,
    list_distributions: bool,
    api_key: str | None,
    snakemake_options: tuple[str, ...],
    **given: Any,
) -> None:
    """Run an agent on every prompt of a dataset and gather the trajectories in data/<run_name>.

    What follows `--` goes to Snakemake, such as -- --executor slurm. Ends with 0 when all is well, 1 when prompts could
    not be attempted or too many failed, 2 on a bad option, 128+n after signal n.
    """
    with explained():
        if list_distributions:
            return _list_distributions()
        settings = _settings({name: value for name, value in given.items() if value is not None}, resume)
        if api_key:
            os.environ["TRAJECTILE_API_KEY"] = api_key
        sys.exit(_run(settings, num_workers, dry_run, snakemake_options))


def _settings(given: dict[str, Any], resume: bool) -> Settings:
    run_name = given.get("run_name")
    if run_name is None:
        raise UserError(f"--run_name is missing; {EXAMPLE}")
    identity = read_identity(RunFolder(load_settings({"run_name": run_name}).folder))
    if identity is not None and not resume:
        raise UserError(f"run {run_name} exists; go on with it by --resume, or choose another --run_name")
    inherited = _inherited(identity) if identity else REFERENCE_DEFAULTS
    if "dataset_file" not in {**inherited, **given}:
        raise UserError(f"--dataset_file is missing; {EXAMPLE}")
    return load_settings({**inherited, **given})


def _inherited(identity: Identity) -> dict[str, Any]:
    """Return the run's own settings, as far as this version knows them."""
    return {name: value for name, value in identity.settings.items() if name in Settings.__struct_fields__}


def _run(settings: Settings, num_workers: int, dry_run: bool, options: tuple[str, ...]) -> int:
    from trajectile.preparation import check_run_settings
    from trajectile.runner import run_workflow

    check_run_settings(settings)
    return run_workflow(settings, ["--cores", str(num_workers), *(["-n"] if dry_run else []), *options])


def _list_distributions() -> None:
    """Print each distribution with its chances in percent, and what is missing for it here."""
    from trajectile.preparation import DISTRIBUTIONS_FILE
    from trajectile.tools.distributions import load, missing
    from trajectile.tools.registry import TOOLSETS

    for name, distribution in load(DISTRIBUTIONS_FILE).items():
        chances = ", ".join(f"{toolset} {chance:g}" for toolset, chance in distribution.chances.items())
        lacking = ", ".join(missing(distribution, TOOLSETS))
        click.echo(f"{name:<15} {distribution.purpose}\n{'':<15} {chances}")
        if lacking:
            click.echo(f"{'':<15} not available here: {lacking}")
