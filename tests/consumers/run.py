"""Makes the environments of the consumers (once, about 6 GB) and runs the tests marked `consumers` in them.

python tests/consumers/run.py                      # environments in the temporary folder
python tests/consumers/run.py --cache ~/consumers
"""

import os
import sys
import tempfile
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from consumers.environments import ENVIRONMENTS, install  # noqa: E402


@click.command()
@click.option("--cache", type=click.Path(path_type=Path), default=Path(tempfile.gettempdir()) / "trajectile_consumers")
@click.option("--only", type=click.Choice(list(ENVIRONMENTS)), multiple=True, help="Install these only.")
@click.option("--newer_python", default="python3.12", show_default=True, help="A Python 3.12 or newer, for harbor.")
def main(cache: Path, only: tuple[str, ...], newer_python: str) -> None:
    """Install, then test."""
    for name in only or ENVIRONMENTS:
        click.echo(f"{name}: {', '.join(ENVIRONMENTS[name].alone + ENVIRONMENTS[name].packages)}")
        install(cache.absolute(), name, newer_python)
    os.environ["TRAJECTILE_CONSUMERS"] = str(cache.absolute())
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "-m", "pytest", "-m", "consumers", "-s", "-v", "tests/consumers"])


if __name__ == "__main__":
    main()
