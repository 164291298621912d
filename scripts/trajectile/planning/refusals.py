"""What is refused before a run, since it would end in the words of others or in another run; raises UserErrors."""

import time
from collections.abc import Sequence
from contextlib import suppress

from trajectile.configuration.schema import schema
from trajectile.configuration.settings import Settings
from trajectile.dataset.files import unit_of
from trajectile.errors import UserError
from trajectile.notes import Notes, counted
from trajectile.run_folder.identity import Identity
from trajectile.run_folder.paths import RunFolder

CLOCKS_DIFFER_S = 10.0  # what Snakemake forgives
COLLECT = "collect"  # the target that runs no prompt; Snakemake tells no targets while it reads the Snakefile


def refuse_dataset(settings: Settings) -> None:
    """Refuse a dataset file that Snakemake cannot work with."""
    dataset = settings.dataset_file
    if set("{}") & set(dataset):
        raise UserError(f"dataset_file: Snakemake takes the braces in {dataset} for wildcards. Rename the file.")
    with suppress(OSError):
        if settings.dataset_path.stat().st_mtime > time.time() + CLOCKS_DIFFER_S:
            raise UserError(
                f"dataset_file: {dataset} was last changed in the future, by its time. Correct that: touch {dataset}"
            )


def refuse_unbegun(folder: RunFolder, identity: Identity | None, arguments: Sequence[str]) -> None:
    """Refuse to collect the results of a run that is not there, as under a mistyped name."""
    if COLLECT in arguments and not (identity or folder.numbers("") or folder.numbers("journal")):
        raise UserError(f"run_name: run {folder.root.name} has not begun: nothing to collect is in {folder.root}")


def refuse_misread_name(run_name: str, arguments: Sequence[str]) -> None:
    """Refuse a name of digits where Snakemake's --config made another of it: 007 would be run 7."""
    named = [text.removeprefix("--config=").partition("run_name=") for text in arguments]
    typed = [name for before, found, name in named if found and not before]
    if typed and typed[-1] != run_name:
        raise UserError(
            f"run_name: Snakemake's --config reads {typed[-1]} as {run_name}, which would be another run. Choose "
            f'another name, or give it in a file: run_name: "{typed[-1]}" in config/config.yaml or under --configfile.'
        )


def refuse_images(settings: Settings, notes: Notes) -> None:
    """Refuse rows that name an image where the sandbox runs none."""
    if settings.sandbox != "local" or not notes.images:
        return
    others = [name for name in schema()["properties"]["sandbox"]["enum"] if name != "local"]
    use = f"Set sandbox to {' or '.join(others)}, or take" if others else "This version has no other sandbox: take"
    first = f"the first is {unit_of(settings.dataset_path)} {notes.image_line}"
    raise UserError(
        f"dataset_file: {settings.dataset_file}: {counted(notes.images, 'row')} with an image ({first}), which "
        f"sandbox: local cannot run. {use} the columns image and docker_image out."
    )
