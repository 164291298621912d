"""A running browser with all that belongs to it: the driver's process, the gate, a folder, a watch over memory."""

import asyncio
import logging
import os
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trajectile.configuration.settings import Settings
from trajectile.environment import TEMPORARY
from trajectile.errors import PromptError
from trajectile.sandbox import scratch
from trajectile.tools.browser.finding import browser_environment, cdp_url, executable, without_key
from trajectile.tools.browser.gate import Gate
from trajectile.tools.browser.memory import size, watch_memory

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

START_TIMEOUT_S = 60.0
CLOSE_TIMEOUT_S = 10.0
SHORT_FOLDER = "/tmp"
FOLDER_CHARACTERS = 60  # Chromium puts a socket below, whose path may have 107
ARGUMENTS = (
    # nothing may go past the proxy: no QUIC, and WebRTC not by UDP
    "--disable-quic",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)
log = logging.getLogger(__name__)


class Running(NamedTuple):
    """`gate` tells why a host could not be reached, None where the browser is elsewhere; `close` ends everything."""

    browser: "Browser"
    gate: Gate | None
    stack: AsyncExitStack

    async def close(self) -> None:
        await self.stack.aclose()


async def start(settings: Settings) -> Running:
    """Start a browser, or connect to one elsewhere. PromptError where that cannot be done."""
    stack = AsyncExitStack()
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            folder = await asyncio.to_thread(_make_folder)
            stack.callback(scratch.remove, folder)
            driver = await _start_driver(folder, stack)
            if settings.browser_cdp_url:
                browser, gate = await driver.chromium.connect_over_cdp(cdp_url(settings)), None
            else:
                browser, gate = await _launch(driver, settings, folder, stack)
            stack.push_async_callback(_end, browser.close)
        return Running(browser, gate, stack)
    except Exception as error:  # Playwright raises a bare one where its driver dies
        await stack.aclose()
        said = str(error) or f"not ready within {START_TIMEOUT_S:g} s"
        raise PromptError("browser_start", f"the browser does not start: {without_key(said)[:1000]}") from None
    except BaseException:
        await stack.aclose()
        raise


def _make_folder() -> Path:
    """A new folder of our own; those of processes that were killed go."""
    parent = Path(tempfile.gettempdir()) / f"trajectile-browser-{os.getuid()}"
    parent.mkdir(mode=0o700, exist_ok=True)
    if parent.stat().st_uid != os.getuid():
        raise PermissionError(f"{parent} belongs to another user")
    scratch.reap(parent)
    folder = scratch.unused(parent)
    folder.mkdir()
    return folder


async def _start_driver(folder: Path, stack: AsyncExitStack) -> "Playwright":
    from playwright.async_api import async_playwright

    # The driver takes the place of its temporary folders from the environment alone; it leaves them when it is killed.
    # What else is started meanwhile gets its environment from environment.passed.
    kept = os.environ.get(TEMPORARY)
    os.environ[TEMPORARY] = str(folder)
    try:
        driver = await async_playwright().start()
    finally:
        if kept is None:
            del os.environ[TEMPORARY]
        else:
            os.environ[TEMPORARY] = kept
    stack.push_async_callback(_end, driver.stop)
    return driver


async def _launch(
    driver: "Playwright", settings: Settings, folder: Path, stack: AsyncExitStack
) -> tuple["Browser", Gate]:
    gate = Gate(allow_private=settings.web_allow_private)
    proxy = await gate.open()
    stack.push_async_callback(gate.close)
    limit_bytes = size(settings.browser_memory)
    browser = await _launch_sandboxed(
        driver,
        executable_path=executable(settings),
        args=[*ARGUMENTS, f"--js-flags=--max-old-space-size={max(limit_bytes >> 20, 1)}"],
        proxy={"server": proxy},
        env=browser_environment() | {TEMPORARY: str(folder) if len(str(folder)) <= FOLDER_CHARACTERS else SHORT_FOLDER},
        downloads_path=folder,
        handle_sigint=False,
        handle_sigterm=False,
        handle_sighup=False,
    )
    watch = asyncio.create_task(watch_memory(limit_bytes))
    stack.callback(watch.cancel)
    return browser, gate


async def _launch_sandboxed(driver: "Playwright", **options: Any) -> "Browser":
    """Launch Chromium with its own sandbox where that works: never for root, elsewhere by user namespaces."""
    from playwright.async_api import Error

    if os.geteuid() == 0:
        return await driver.chromium.launch(chromium_sandbox=False, **options)
    try:
        return await driver.chromium.launch(chromium_sandbox=True, **options)
    except Error:
        browser = await driver.chromium.launch(chromium_sandbox=False, **options)
        log.warning("Chromium's own sandbox needs user namespaces, which are not allowed here: pages run without it")
        return browser


async def _end(close: Callable[[], Awaitable[None]]) -> None:
    """Close what may be dead or hang; all of it ends with this process at the latest."""
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await close()
    except Exception as error:
        log.debug("closing a browser: %s", error)
