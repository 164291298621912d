"""A real headless Chromium for the tests of pages."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextmanager
def headless_chromium() -> Iterator[Any]:
    """Yield a browser of Playwright's; skip where the package or a browser is missing."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if not path:
        pytest.skip("needs Chromium: apt-get install chromium")
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=as_root)
        yield browser
        browser.close()
