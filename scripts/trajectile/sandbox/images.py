"""Images, seen to once a machine: looked for, fetched under a lock, a failure told to all who wait for it."""

import asyncio
import hashlib
import os
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from trajectile.errors import PromptError, UserError
from trajectile.model.local.catalogue import cache_folder
from trajectile.model.serving.locks import file_lock
from trajectile.run_folder.paths import replace_file

FETCHES_AT_ONCE = 3
Progress = Callable[[str], None]


class ImageUnavailable(PromptError):
    """An image cannot be had; the message has the engine's own words. Ends the prompts that need it, no others."""

    def __init__(self, image: str, reason: str) -> None:
        super().__init__("image_unavailable", f"image {image} cannot be had: {reason}")
        self.reason = reason


class FetchStopped(Exception):
    """Nobody waits for an image any more."""


class Found(NamedTuple):
    """An image that is here: `name` is how to run exactly it, `digest` what to write down of it."""

    name: str
    digest: str


class ImageStore(ABC):
    """Where one engine keeps images; `place` names it, `locks` is a folder that all who use that place share.

    The methods block.
    """

    place: str

    def __init__(self) -> None:
        self.locks = cache_folder() / "images" / socket.gethostname()

    @abstractmethod
    def find(self, image: str) -> Found | None:
        """Return an image that is here, None for one that is not."""

    @abstractmethod
    def fetch(self, image: str, progress: Progress) -> None:
        """Bring an image here, telling `progress` how far it is. ImageUnavailable where it cannot be had."""


class Fetched(msgspec.Struct):
    """How the last attempt to fetch an image ended, "" for well; `start` names the start of the run that made it."""

    start: str
    ended: float
    reason: str


class Images:
    """The images of a shard or a check. `pull` is one of missing, always, never; `start` names this start of the run.

    An image is fetched by one process on a machine while the others wait. Those that waited for a failed attempt, and
    all later ones of the same start, are given its outcome.
    """

    def __init__(self, store: ImageStore, pull: str, start: str) -> None:
        self._store, self._pull, self._start = store, pull, start
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._slots = asyncio.Semaphore(FETCHES_AT_ONCE)
        self._settled: set[str] = set()

    async def ensure(self, image: str, progress: Progress) -> Found:
        """Return `image`, fetched where that is due. ImageUnavailable; UserError where there is no room for locks."""
        if self._pull != "always" or image in self._settled:
            if found := await asyncio.to_thread(self._store.find, image):
                return found
            if self._pull == "never":
                raise ImageUnavailable(image, "it is not on this machine, and image_pull is never")
        asked = time.time()
        async with self._turns[image], self._slots, file_lock(self._file(image, "lock")):
            return await self._settle(image, asked, progress)

    async def _settle(self, image: str, asked: float, progress: Progress) -> Found:
        stopped = threading.Event()

        def advance(text: str) -> None:
            if stopped.is_set():  # a cancelled download must not hold up the end of the process
                raise FetchStopped
            progress(text)

        try:
            return await asyncio.to_thread(self._fetch, image, asked, advance)
        finally:
            stopped.set()

    def _fetch(self, image: str, asked: float, progress: Progress) -> Found:
        last = self._last(image)
        if last and (last.ended < asked and (not self._start or last.start != self._start)):
            last = None
        if last and last.reason:
            raise ImageUnavailable(image, last.reason)
        found = self._store.find(image) if last or self._pull != "always" else None
        found = found or self._fetch_now(image, progress)
        self._settled.add(image)
        return found

    def _fetch_now(self, image: str, progress: Progress) -> Found:
        try:
            self._store.fetch(image, progress)
            found = self._store.find(image)
            if found is None:
                raise ImageUnavailable(image, "the engine fetched it and does not have it")
        except ImageUnavailable as error:
            self._note(image, error.reason)
            raise
        self._note(image, "")
        return found

    def _note(self, image: str, reason: str) -> None:
        replace_file(self._file(image, "json"), msgspec.json.encode(Fetched(self._start, time.time(), reason)))

    def _last(self, image: str) -> Fetched | None:
        try:
            return msgspec.json.decode(self._file(image, "json").read_bytes(), type=Fetched)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def _file(self, image: str, suffix: str) -> Path:
        folder = self._store.locks
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise UserError(
                f"images: nothing can be written in {folder}. Set TRAJECTILE_CACHE, and TRAJECTILE_SIF where it is "
                "set, to folders of your own."
            )
        name = hashlib.sha256(f"{self._store.place}\0{image}".encode()).hexdigest()[:32]
        return folder / f"{name}.{suffix}"
