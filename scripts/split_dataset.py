"""Cut the owed prompts of a dataset into shard files, as the plan says.

Example: python scripts/split_dataset.py --run_folder data/first_run --dataset_file data/prompts.jsonl --digest 1f…
"""

from pathlib import Path

import click
from trajectile.errors import UserError
from trajectile.planning.inventory import failed_attempts, remember_all, take_inventory
from trajectile.planning.splitting import plan_again, write_shards
from trajectile.run_folder.paths import RunFolder
from trajectile.step import Step


@click.command(cls=Step, help=__doc__)
@click.option("--run_folder", type=click.Path(path_type=Path), required=True, help="Folder of the run.")
@click.option("--dataset_file", type=click.Path(path_type=Path), required=True, help="File of prompts.")
@click.option("--batch_size", type=click.IntRange(min=1), required=True, help="Prompts in a new shard.")
@click.option("--max_samples", type=click.IntRange(min=0), default=0, help="Use only the first rows; 0 for all.")
@click.option("--max_attempts", type=click.IntRange(min=0), default=0, help="Give up on a prompt then; 0 for never.")
@click.option("--on_bad_row", type=click.Choice(["error", "skip"]), default="error", help="On rows of no use.")
@click.option("--digest", required=True, help="The plan's digest, which names the manifest.")
def main(
    run_folder: Path,
    dataset_file: Path,
    batch_size: int,
    max_samples: int,
    max_attempts: int,
    on_bad_row: str,
    digest: str,
) -> None:
    folder = RunFolder(run_folder)
    reading = {"on_bad_row": on_bad_row, "max_samples": max_samples or None}
    inventory = take_inventory(folder, dataset_file, **reading)
    remember_all(folder, dataset_file, inventory.dataset, **reading)
    failed = failed_attempts(folder)
    limits = {"batch_size": batch_size, "max_attempts": max_attempts or None}
    plan = plan_again(folder, inventory, failed, digest, **limits)
    if plan is None:
        raise UserError(f"{dataset_file} or {run_folder} changed since the run was planned. Run again.")
    write_shards(folder, plan, dataset_file, **reading)
    click.echo(f"{len(plan.owed)} of {plan.prompts} prompts are owed, in {len(plan.shards)} shards")


if __name__ == "__main__":
    main()
