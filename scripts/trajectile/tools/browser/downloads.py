"""Downloads of a prompt's pages: put into its sandbox, up to a size, and told to the model."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from trajectile.errors import PromptError
from trajectile.tools.saving import save
from trajectile.tools.tool import ToolContext

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Download, Page

FOLDER = "downloads"
WAIT_S = 10.0
NAME_CHARACTERS = 100
UNSAFE = re.compile(r"[^\w.+() -]|\.(?=\.)")


class Downloads:
    """`note` takes what the model is to know."""

    def __init__(self, context: ToolContext, note: Callable[[str], None]) -> None:
        self._sandbox = context.sandbox
        self._limit = context.settings.browser_max_bytes
        self._note = note
        self._names: set[str] = set()
        self._urls: dict[str, str] = {}
        self._running: dict[asyncio.Task[None], Download] = {}

    async def attach(self, page: "Page", session: "CDPSession") -> None:
        """Take the downloads of a page. Only the DevTools protocol tells how much has come while it comes."""
        page.on("download", self._begin)
        session.on("Page.downloadWillBegin", self._name)
        session.on("Page.downloadProgress", self._measure)
        await session.send("Page.enable")

    @property
    def under_way(self) -> bool:
        return bool(self._running)

    async def wait(self) -> None:
        """Wait for what is under way, not long: the rest is told with a later result."""
        if self._running:
            await asyncio.wait(self._running, timeout=WAIT_S)

    async def close(self) -> None:
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, download: "Download") -> None:
        task = asyncio.create_task(self._take(download))
        self._running[task] = download
        task.add_done_callback(self._running.pop)

    def _name(self, event: dict[str, Any]) -> None:
        self._urls[event["guid"]] = event["url"]

    def _measure(self, event: dict[str, Any]) -> None:
        if max(event["totalBytes"], event["receivedBytes"]) > self._limit:
            for task, download in self._running.items():
                if download.url == self._urls.get(event["guid"]):
                    task.cancel()

    async def _take(self, download: "Download") -> None:
        from playwright.async_api import Error

        name = download.suggested_filename
        try:
            path = await download.path()
            size = path.stat().st_size
            if size > self._limit:
                raise asyncio.CancelledError
            await self._save(name, path)
            await download.delete()
        except asyncio.CancelledError:
            self._note(f"the download of {name} was ended: it has more than {self._limit:,} bytes (browser_max_bytes)")
            await download.cancel()
        except (Error, OSError, PromptError) as error:
            self._note(f"the download of {name} failed: {str(error).splitlines()[0]}")

    async def _save(self, name: str, path: Path) -> None:
        data = await asyncio.to_thread(path.read_bytes)
        where = f"{FOLDER}/{self._free(name)}"
        await save(self._sandbox, where, data)
        self._note(f"downloaded {name}: {len(data):,} bytes, saved in the sandbox as {where}")

    def _free(self, suggested: str) -> str:
        """A file name without surprises that was not given before."""
        plain = UNSAFE.sub("_", PurePosixPath(suggested).name).lstrip(".")[-NAME_CHARACTERS:] or "download"
        name, number = plain, 1
        while name in self._names:
            number += 1
            name = f"{PurePosixPath(plain).stem}_{number}{PurePosixPath(plain).suffix}"
        self._names.add(name)
        return name
