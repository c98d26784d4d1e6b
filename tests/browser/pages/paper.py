"""Pages in print on A4, laid out for the sheet between its margins."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Page

PAPER_PX: Final = 673
"""210 mm without two margins of 16 mm, at 96 px to the inch."""


def put_on_paper(page: Page) -> None:
    """Start printing: scripts get the event before the layout for the sheet."""
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": PAPER_PX, "height": 1000})


def take_back(page: Page) -> None:
    """As printing ends."""
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.evaluate("dispatchEvent(new Event('afterprint'))")
