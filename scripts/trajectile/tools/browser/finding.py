"""Which browser is used, and what is missing where there is none."""

import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from trajectile.configuration.settings import Settings

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
KEY_VARIABLE = "TRAJECTILE_BROWSER_API_KEY"
KEY_MARK = "{key}"
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)


def requirement(settings: Settings) -> str:
    """What the browser tools lack on this machine, "" where nothing."""
    if find_spec("playwright") is None:
        return "the package playwright is not installed; install the extra browser"
    if settings.browser_cdp_url:
        keyless = KEY_MARK in settings.browser_cdp_url and not os.environ.get(KEY_VARIABLE)
        return f"browser_cdp_url needs {KEY_VARIABLE} in the environment" if keyless else ""
    if settings.browser_path:
        return "" if shutil.which(settings.browser_path) else f"browser_path: {settings.browser_path} is no program"
    if executable(settings) or has_own():
        return ""
    return "there is no Chromium; install one (playwright install chromium, or your system's), or set browser_path"


def executable(settings: Settings) -> str | None:
    """The path of the browser, None where it is Playwright's own."""
    names = [settings.browser_path] if settings.browser_path else NAMES
    return next(filter(None, map(shutil.which, names)), None)


def has_own() -> bool:
    """Whether `playwright install` was run for Chromium."""
    home = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "")
    folder = Path(named) if named not in ("", "0") else home / "ms-playwright"
    return any(folder.glob("chromium*"))


def cdp_url(settings: Settings) -> str:
    """The address of the browser elsewhere, its key put in."""
    return settings.browser_cdp_url.replace(KEY_MARK, os.environ.get(KEY_VARIABLE, ""))


def without_key(text: str) -> str:
    key = os.environ.get(KEY_VARIABLE)
    return text.replace(key, "***") if key else text


def browser_environment() -> dict[str, str | float | bool]:
    """Our environment less what may be a secret: pages run in the browser."""
    return {name: value for name, value in os.environ.items() if not SECRET.search(name)}
