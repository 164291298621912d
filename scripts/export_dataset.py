"""Writes the trajectories of a run in the formats of trainers."""

from pathlib import Path

import click
from trajectile.exports.exporting import Summary, export
from trajectile.exports.formats import FORMATS
from trajectile.exports.selection import Options
from trajectile.results.command import run_folder_option
from trajectile.run_folder.paths import RunFolder
from trajectile.step import Step


@click.command(cls=Step)
@run_folder_option
@click.option(
    "--exports",
    type=click.Choice(list(FORMATS)),
    multiple=True,
    required=True,
    help="A format to write; may be given several times.",
)
@click.option(
    "--export_only_completed",
    type=click.BOOL,
    default=False,
    show_default=True,
    help="Only trajectories that the model finished by itself.",
)
@click.option(
    "--export_min_turns",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Only trajectories with at least so many assistant turns of the model's own.",
)
@click.option(
    "--export_max_tokens",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Only trajectories of at most so many tokens, schemas included, estimated from bytes; 0 for no limit.",
)
@click.option(
    "--export_drop_failed_calls",
    type=click.BOOL,
    default=False,
    show_default=True,
    help="Take tool calls that failed out of the conversations, with their results.",
)
@click.option(
    "--export_validation_fraction",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Share of the prompts whose rows go to the validation split.",
)
@click.option(
    "--export_deduplicate",
    type=click.Choice(["none", "conversations", "prompts"]),
    default="none",
    show_default=True,
    help="Keep the first of equal conversations, or of the rows of equal prompts.",
)
@click.option(
    "--export_arguments",
    type=click.Choice(["object", "string"]),
    default="object",
    show_default=True,
    help="How messages hold the arguments of a tool call.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the validation split.")
def main(
    run_folder: Path,
    exports: tuple[str, ...],
    export_only_completed: bool,
    export_min_turns: int,
    export_max_tokens: int,
    export_drop_failed_calls: bool,
    export_validation_fraction: float,
    export_deduplicate: str,
    export_arguments: str,
    seed: int,
) -> None:
    """Write exports/<format>/ for each format."""
    options = Options(
        only_completed=export_only_completed,
        min_turns=export_min_turns,
        max_tokens=export_max_tokens,
        drop_failed_calls=export_drop_failed_calls,
        validation_fraction=export_validation_fraction,
        deduplicate=export_deduplicate,
        arguments=export_arguments,
        seed=seed,
    )
    for summary in export(RunFolder(run_folder), list(dict.fromkeys(exports)), options):
        click.echo(f"export_dataset: {_line(summary)}")


def _line(summary: Summary) -> str:
    parts = [f"{summary.format}: {summary.rows_in} rows in, {summary.rows_out} out"]
    if len(summary.splits) > 1:
        parts.append(", ".join(f"{split} {number}" for split, number in summary.splits.items()))
    for word, counts in (("left out", summary.left_out), ("noted", summary.noted)):
        if counts:
            parts.append(f"{word}: " + ", ".join(f"{n} {reason}" for reason, n in counts.items()))
    return "; ".join(parts)


if __name__ == "__main__":
    main()
