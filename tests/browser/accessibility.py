"""What axe-core finds wrong with a page: WCAG 2.2 at level AA, and its best practice."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from playwright.sync_api import Page

_AXE: Final = settings.BASE_DIR / "node_modules" / "axe-core" / "axe.min.js"
_RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_FOUND: Final = """
async rules => (await axe.run(document, {resultTypes: ["violations"], runOnly: rules})).violations.flatMap(
    ({id, nodes}) => nodes.map(({html, failureSummary}) => `${id}: ${html.slice(0, 200)} (${failureSummary})`))
"""


def violations(page: Page) -> list[str]:
    """A line for every element that breaks a rule."""
    page.evaluate(_AXE.read_text())
    told: list[str] = page.evaluate(_FOUND, _RULES)
    return told
