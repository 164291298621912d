"""Look for the images of the owed prompts on this machine, and fetch those that are missing, as image_pull says.

An image that cannot be had is reported and ends no run: its prompts fail, and no other.

Example: python scripts/check_images.py --run_folder data/first_run --manifest MANIFEST --report REPORT
"""

import asyncio
from pathlib import Path

import click
import msgspec
from trajectile.errors import UserError
from trajectile.step import Step


@click.command(cls=Step, help=__doc__)
@click.option("--run_folder", type=click.Path(exists=True, path_type=Path), required=True, help="Folder of the run.")
@click.option("--manifest", type=click.Path(exists=True, path_type=Path), required=True, help="The plan, as split.")
@click.option("--report", type=click.Path(path_type=Path), required=True, help="File to write what was found to.")
def main(run_folder: Path, manifest: Path, report: Path) -> None:
    from trajectile.configuration.settings import read_settings
    from trajectile.planning.image_check import check_images, summary, wanted_images
    from trajectile.run_folder.batch import Manifest
    from trajectile.run_folder.identity import record_images
    from trajectile.run_folder.paths import RunFolder, write_atomic
    from trajectile.sandbox.factory import make_backend

    folder = RunFolder(run_folder)
    settings = read_settings(folder)
    backend = make_backend(settings, folder)
    images = backend.images()
    if images is None:
        raise UserError(f"sandbox: {settings.sandbox} keeps no images on this machine: there is nothing to check")
    wanted = wanted_images(folder, msgspec.json.decode(manifest.read_bytes(), type=Manifest), backend)
    checked = asyncio.run(check_images(images, wanted, click.echo))
    record_images(folder, {name: image.digest for name, image in checked.items() if image.digest})
    write_atomic(report, msgspec.json.format(msgspec.json.encode(checked), indent=2) + b"\n")
    click.echo(summary(checked.values()))
    backend.close()


if __name__ == "__main__":
    main()
