"""Says how a run ended; the status tells whether few enough prompts failed."""

from pathlib import Path

import click
import msgspec
from trajectile.results.command import read_identity, run_folder_option
from trajectile.results.verdict import drop_copied_journals, judge, last_lines, read_statistics
from trajectile.run_folder.paths import RunFolder, write_atomic
from trajectile.step import Step


@click.command(cls=Step)
@run_folder_option
@click.option(
    "--max_failed_fraction",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    help="The status is 1 when a larger part of the prompts failed.",
)
@click.pass_context
def main(ctx: click.Context, run_folder: Path, max_failed_fraction: float) -> None:
    """Write verdict.json, delete journals that are no longer needed, and print how the run ended."""
    folder = RunFolder(run_folder)
    statistics = read_statistics(folder)
    verdict = judge(statistics, max_failed_fraction)
    drop_copied_journals(folder)
    write_atomic(folder.verdict, msgspec.json.format(msgspec.json.encode(verdict)) + b"\n")
    prompt = read_identity(folder).frozen.get("ephemeral_system_prompt", "")
    for line in last_lines(statistics, verdict, prompt):
        click.echo(line)
    if not verdict.holds:
        ctx.exit(1)


if __name__ == "__main__":
    main()
