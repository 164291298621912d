"""What the result steps share at the command line: options and run.json."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from trajectile.dataset.prompts import read_prompts
from trajectile.errors import UserError
from trajectile.rows import PromptRow
from trajectile.run_folder.paths import RunFolder


class RunIdentity(msgspec.Struct):
    """What the results need of run.json: `tools` are the names of all tools the run can offer."""

    run_name: str
    tools: list[str]
    settings: dict[str, Any] = {}
    frozen: dict[str, Any] = {}


class Dataset(msgspec.Struct):
    """A dataset file and how it is read; `max_samples` 0 means all."""

    path: Path
    max_samples: int = 0
    on_bad_row: str = "error"

    def prompts(self) -> Iterator[PromptRow]:
        """Yield the prompts in dataset order, without their ordinals."""
        limit = self.max_samples or None
        return read_prompts(self.path, on_bad_row=self.on_bad_row, max_samples=limit, ordinals=False)


def read_identity(folder: RunFolder) -> RunIdentity:
    """Read run.json; UserError where it is missing or is not one."""
    try:
        return msgspec.json.decode(folder.run_json.read_bytes(), type=RunIdentity)
    except FileNotFoundError:
        raise UserError(f"{folder.run_json} is missing: {folder.root} is not the folder of a run") from None
    except msgspec.DecodeError as error:
        raise UserError(f"{folder.run_json} cannot be read: {error}") from None


run_folder_option = click.option(
    "--run_folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="Folder of the run, data/<run_name>.",
)
dataset_file_option = click.option(
    "--dataset_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="The dataset the run is made from.",
)
max_samples_option = click.option(
    "--max_samples",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Only the first prompts of the dataset, 0 for all.",
)
on_bad_row_option = click.option(
    "--on_bad_row",
    type=click.Choice(["error", "skip"]),
    default="error",
    show_default=True,
    help="Whether a bad dataset row stops the step.",
)
