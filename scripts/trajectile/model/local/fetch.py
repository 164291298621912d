"""Download the weights of local models beforehand: python -m trajectile.model.local.fetch NAME."""

import asyncio
import sys

import click

from trajectile.errors import UserError
from trajectile.model.local.catalogue import resolve
from trajectile.model.local.weights import ensure_entry, show_progress


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="NAME...")
def main(models: tuple[str, ...]) -> None:
    """Put the weights of each model NAME into the cache folder, if they are not there yet."""
    for model in models:
        try:
            entry = resolve(model)
            click.echo(f"local/{entry.name}: {entry.size / 1e6:.0f} MB, {entry.licence or 'own file'}", err=True)
            click.echo(asyncio.run(ensure_entry(entry, show_progress(entry))))
        except UserError as error:
            click.echo(error, err=True)
            sys.exit(2)


if __name__ == "__main__":
    main()
