"""Lists the finished rows that are not training data, with their reasons."""

from collections import Counter
from pathlib import Path

import click
import jsonlines
from trajectile.results.command import read_identity, run_folder_option
from trajectile.results.discarded import write_filtered
from trajectile.results.filters import discards, reason_words, reasoning_is_required
from trajectile.results.sources import FinishedRows
from trajectile.results.tables import counted
from trajectile.run_folder.journal import ENCODER
from trajectile.run_folder.paths import RunFolder, replacing
from trajectile.step import Step


@click.command(cls=Step)
@run_folder_option
@click.option(
    "--require_reasoning",
    type=click.Choice(["auto", "true", "false"], case_sensitive=False),
    default="auto",
    show_default=True,
    help="Discard rows without any reasoning; auto does, unless reasoning is disabled.",
)
@click.option("--reasoning_disabled", type=bool, default=False, help="The run asked the model not to reason.")
def main(run_folder: Path, require_reasoning: str, reasoning_disabled: bool) -> None:
    """Write discarded.jsonl: which finished rows the merge leaves out, and why."""
    folder = RunFolder(run_folder)
    tools = frozenset(read_identity(folder).tools)
    required = reasoning_is_required(require_reasoning, reasoning_disabled)
    rows, total, reasons = FinishedRows(folder), 0, Counter[str]()
    with replacing(folder.discarded) as out, jsonlines.Writer(out, dumps=ENCODER.encode) as writer:
        for discard in discards(rows, tools, require_reasoning=required):
            writer.write(discard)
            total += 1
            reasons.update(reason_words(discard.reasons))
    write_filtered(folder, rows)
    click.echo(f"filter_trajectories: discarded {counted(total, dict(reasons.most_common()))}")


if __name__ == "__main__":
    main()
