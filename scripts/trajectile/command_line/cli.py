"""The command line: options become settings, settings become a run of the workflow."""

import sys
from typing import Any

import click

from trajectile.command_line.options import SnakemakeCommand, setting_options
from trajectile.command_line.placement import WORKERS, Placement, place
from trajectile.configuration.settings import Settings, load_settings
from trajectile.errors import UserError
from trajectile.run_folder.identity import Identity, read_identity
from trajectile.run_folder.paths import RunFolder

REFERENCE_DEFAULTS = {"model": "anthropic/claude-sonnet-4.6", "distribution": "default"}
NOT_INHERITED = frozenset({"settings_change", "retry_failed"})  # said for one start, not for all that follow
EXAMPLE = "for example: --dataset_file=data/prompts.jsonl --batch_size=10 --run_name=my_run"


@click.command(cls=SnakemakeCommand, context_settings={"max_content_width": 110})
@setting_options
@click.option(
    "--num_workers",
    type=click.IntRange(min=1),
    default=None,
    show_default=f"{WORKERS}, or what a profile says",
    help="Shards at once.",
)
@click.option("--resume", is_flag=True, help="Go on with a run; options that are not given are the run's own.")
@click.option("--dry-run", "--dry_run", "-n", is_flag=True, help="Show what would run and why; change nothing.")
@click.option("--status", is_flag=True, help="Show how the run stands, and end; reads its folder only.")
@click.option("--watch", is_flag=True, help="With --status: keep showing until nobody makes the run.")
@click.option("--clean", is_flag=True, help="Remove what killed starts left behind, never results, and end.")
@click.option("--list_distributions", is_flag=True, help="Print the toolset distributions and end.")
@click.option("--api_key", default="", help="Put into the environment of the run, and nowhere else.", metavar="KEY")
@click.pass_obj
def main(
    snakemake_options: tuple[str, ...],
    /,
    num_workers: int | None,
    resume: bool,
    dry_run: bool,
    status: bool,
    watch: bool,
    clean: bool,
    list_distributions: bool,
    api_key: str,
    **given: Any,
) -> None:
    """Run an agent on every prompt of a dataset and gather the trajectories in data/<run_name>.

    What follows `--` goes to Snakemake, such as -- --executor slurm. Ends with 0 when all is well, 1 when prompts could
    not be attempted or too many failed, 2 when an option or the dataset is of no use, 128+n after signal n.
    """
    if list_distributions:
        return _list_distributions(given)
    if status or watch:
        return _status(given, watch)
    if clean:
        return _clean(given)
    settings = _settings({name: value for name, value in given.items() if value is not None}, resume)
    options = [*(["-n"] if dry_run else []), *snakemake_options]
    sys.exit(_run(settings, place(options, num_workers), api_key))


def _settings(given: dict[str, Any], resume: bool) -> Settings:
    folder = _folder(given)
    identity = read_identity(folder)
    goes_on = resume or given.get("retry_failed", "").lower() == "true"
    if not goes_on and (identity or folder.numbers("")):
        raise UserError(f"run {folder.root.name} exists; go on with it by --resume, or choose another --run_name")
    inherited = _inherited(identity) if identity else REFERENCE_DEFAULTS
    if "dataset_file" not in {**inherited, **given}:
        raise UserError(f"--dataset_file is missing; {EXAMPLE}")
    return load_settings({**inherited, **given})


def _folder(given: dict[str, Any]) -> RunFolder:
    """Return the folder of the run that is named."""
    if (run_name := given.get("run_name")) is None:
        raise UserError(f"--run_name is missing; {EXAMPLE}")
    return RunFolder(load_settings({"run_name": run_name}).folder)


def _inherited(identity: Identity) -> dict[str, Any]:
    """Return the run's own settings, as far as this version knows them."""
    names = set(Settings.__struct_fields__) - NOT_INHERITED
    return {name: value for name, value in identity.settings.items() if name in names}


def _run(settings: Settings, placement: Placement, api_key: str) -> int:
    from trajectile.command_line.runner import run_workflow
    from trajectile.planning.preparation import prepare

    prepare(settings, placement.arguments)
    return run_workflow(settings, placement, api_key)


def _status(given: dict[str, Any], watch: bool) -> None:
    from trajectile.command_line.status import show_status

    show_status(_folder(given), watch=watch)


def _clean(given: dict[str, Any]) -> None:
    from trajectile.command_line.cleaning import clean

    removed = clean(_folder(given))
    click.echo(f"removed: {', '.join(removed)}" if removed else "nothing to remove")


def _list_distributions(given: dict[str, Any]) -> None:
    from trajectile.command_line.distribution_table import print_distributions

    print_distributions(load_settings({name: value for name, value in given.items() if value is not None}))
