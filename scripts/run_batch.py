"""Run the agent on the owed prompts of one shard and write its batch file.

Settings come from the run folder, where the start of the run put them; API keys from the environment.
A second start goes on where the first was stopped. Ends with 0 when every prompt was attempted, 1 when some could not
be, 128+n after signal n.

Example: python scripts/run_batch.py --run_folder data/first_run --shard 3 --manifest MANIFEST
"""

import asyncio
import signal
import sys
from pathlib import Path

import click
from trajectile.console import log_to_stderr
from trajectile.step import Step


@click.command(cls=Step, help=__doc__)
@click.option("--run_folder", type=click.Path(exists=True, path_type=Path), required=True, help="Folder of the run.")
@click.option("--shard", type=click.IntRange(min=0), required=True, help="Number of the shard.")
@click.option("--manifest", type=click.Path(exists=True, path_type=Path), required=True, help="The plan, as split.")
def main(run_folder: Path, shard: int, manifest: Path) -> None:
    from trajectile.run_folder.paths import RunFolder
    from trajectile.shard.execution import Execution

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends with 130 before the shard listens, as SIGTERM does with 143
    execution = Execution(RunFolder(run_folder), shard, manifest)
    log_to_stderr(execution.settings.verbose)
    sys.exit(asyncio.run(execution.run()))


if __name__ == "__main__":
    main()
