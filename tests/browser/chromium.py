"""The system's Chromium, headless, which never speaks to the world outside."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

_QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser that is closed after the block."""
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium") or shutil.which("chromium-browser")
    assert program is not None, "Chromium is missing: apt package chromium"
    with sync_playwright() as playwright:
        # --no-sandbox: the suite runs as root, where Chromium's own sandbox cannot.
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", *_QUIET]
        launched = playwright.chromium.launch(executable_path=program, args=arguments)
        yield launched
        launched.close()
