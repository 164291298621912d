"""The images that the owed prompts need: looked for, and fetched, before anything is paid for."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from trajectile.notes import counted
from trajectile.run_folder.batch import Manifest, rows_to_run
from trajectile.run_folder.paths import RunFolder
from trajectile.sandbox.backend import Backend
from trajectile.sandbox.images import Images, ImageUnavailable

SAY_EVERY_S = 5.0
Say = Callable[[str], None]


class CheckedImage(msgspec.Struct):
    """An image of the plan: how many owed prompts need it, and its digest, or why it cannot be had."""

    prompts: int
    digest: str = ""
    reason: str = ""


def wanted_images(folder: RunFolder, manifest: Manifest, backend: Backend) -> Counter[str]:
    """Count the owed prompts of a plan by their image."""
    wanted: Counter[str] = Counter()
    for number, shard in manifest.shards.items():
        withdrawn = {bytes.fromhex(row) for row in shard.withdrawn}
        wanted.update(backend.image_of(row) for row in rows_to_run(folder, int(number), withdrawn))
    return wanted


async def check_images(images: Images, wanted: Counter[str], say: Say) -> dict[str, CheckedImage]:
    """Return what was found of each image; `say` is told of progress now and then, and of each image there is not."""
    progress = _Progress(len(wanted), say)

    async def check(image: str, prompts: int) -> CheckedImage:
        try:
            found = await images.ensure(image, lambda text: progress.show(image, text))
            return CheckedImage(prompts, digest=found.digest)
        except ImageUnavailable as error:
            say(f"{counted(prompts, 'prompt')} cannot run: {error}")
            return CheckedImage(prompts, reason=error.reason)
        finally:
            progress.done += 1

    checked = await asyncio.gather(*(check(image, prompts) for image, prompts in wanted.items()))
    return dict(zip(wanted, checked, strict=True))


class _Progress:
    """A line every few seconds, whatever the number of images that are fetched."""

    def __init__(self, total: int, say: Say) -> None:
        self.done = 0
        self._total, self._say, self._next = total, say, 0.0

    def show(self, image: str, text: str) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + SAY_EVERY_S
            self._say(f"images: {self.done} of {self._total} seen to; {image}: {text}")


def summary(checked: Iterable[CheckedImage]) -> str:
    """Return the outcome in a line."""
    checked = list(checked)
    lacking = [image for image in checked if image.reason]
    text = f"{counted(len(checked) - len(lacking), 'image')} ready"
    if not lacking:
        return text
    prompts = sum(image.prompts for image in lacking)
    return f"{text}, {len(lacking)} cannot be had: {counted(prompts, 'prompt')} will fail and stay owed"
