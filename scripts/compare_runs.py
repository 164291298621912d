"""Compare two runs on the prompts that both finished: completion, reasoning, tools, tokens, cost, time.

A and B are run folders, or names of runs in data/. Prompts are paired by their exact text. Prints tables, and writes a
page that also names the prompts that only one of the runs completed.

Example: python scripts/compare_runs.py small_model large_model
"""

import os
from pathlib import Path

import click
from rich.console import Console
from trajectile.comparison.changes import changed_prompts, differing_settings
from trajectile.comparison.comparing import Method, compare, read_runs
from trajectile.comparison.page import Side, page
from trajectile.comparison.table import print_comparison
from trajectile.errors import UserError
from trajectile.run_folder.identity import Identity, read_identity
from trajectile.run_folder.paths import RunFolder, write_atomic
from trajectile.step import Step


@click.command(cls=Step, help=__doc__)
@click.argument("a")
@click.argument("b")
@click.option("--page", "page_file", type=click.Path(path_type=Path), help="The page; data/A_and_B.html if not given.")
@click.option("--confidence", type=click.FloatRange(0.5, 0.999), default=0.95, show_default=True, help="Of intervals.")
@click.option("--resamples", type=click.IntRange(min=200), default=2000, show_default=True, help="Of the bootstrap.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
def main(a: str, b: str, page_file: Path | None, confidence: float, resamples: int, seed: int) -> None:
    folders = _folder(a), _folder(b)
    identities = _identity(folders[0]), _identity(folders[1])
    runs = read_runs(*folders)
    comparison = compare(runs, Method(confidence, resamples, seed))
    settings = differing_settings(*identities)
    file = page_file or folders[0].root.parent / f"{folders[0].root.name}_and_{folders[1].root.name}.html"
    sides = Side(identities[0], _link(file, folders[0])), Side(identities[1], _link(file, folders[1]))
    write_atomic(file, page(sides, comparison, settings, changed_prompts(runs, comparison)).encode())
    print_comparison(comparison, settings, Console())
    click.echo(f"compare_runs: {file}")


def _folder(name: str) -> RunFolder:
    found = next((path for path in (Path(name), Path("data") / name) if path.is_dir()), None)
    if found is None:
        raise UserError(f"there is no run {name}: neither {name} nor {Path('data') / name} is a folder")
    return RunFolder(found.resolve())


def _identity(folder: RunFolder) -> Identity:
    identity = read_identity(folder)
    if identity is None:
        raise UserError(f"{folder.run_json} is missing: {folder.root} is not the folder of a run")
    return identity


def _link(file: Path, folder: RunFolder) -> str:
    viewer = folder.root / "viewer.html"
    return Path(os.path.relpath(viewer, file.parent)).as_posix() if viewer.exists() else ""


if __name__ == "__main__":
    main()
