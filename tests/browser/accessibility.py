"""Violations of WCAG 2.2 level AA and best practice, found by axe-core."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from playwright.sync_api import Page

_AXE: Final = settings.BASE_DIR / "node_modules" / "axe-core" / "axe.min.js"
_RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_OF_COLOURS: Final = ["color-contrast", "link-in-text-block"]
_FOUND: Final = """
async only => (await axe.run(document, {resultTypes: ["violations"], runOnly: only})).violations.flatMap(
    ({id, nodes}) => nodes.map(({html, failureSummary}) => `${id}: ${html.slice(0, 200)} (${failureSummary})`))
"""


def violations(page: Page) -> list[str]:
    """A line for every element that breaks a rule."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE.read_text())
    return _violations(page, _RULES)


def violations_of_colours(page: Page) -> list[str]:
    """Rules that a switch between light and dark can break."""
    return _violations(page, {"type": "rule", "values": _OF_COLOURS})


def _violations(page: Page, only: object) -> list[str]:
    violations_found: list[str] = page.evaluate(_FOUND, only)
    return violations_found
