"""Guides: the documents of docs/, their URLs and their search."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Final

from django.conf import settings
from django.templatetags.static import static
from django.urls import reverse

from dashboard.help.markdown import Page, Section, read

FOLDER: Final = settings.BASE_DIR / "docs"
PICTURES: Final = FOLDER / "images"
_ORDER: Final = {
    "user-guide": "Experiments, trials, comparisons, predictions and projects.",
    "workloads": "Built-in workloads, and how to register a program.",
    "metrics": "All metrics with unit, direction, definition and source.",
    "terms": "Words, states and marks of the pages.",
    "network": "The link between the hosts as a parameter.",
    "studies": "Published studies and how to repeat them.",
    "rest": "The REST interface: URLs, tokens, errors.",
    "client": "The Python client and its command.",
    "administrator": "Installation, clusters, users, backups, growth.",
    "security": "Trust boundaries and attacks.",
    "architecture": "The structure of the code and its reasons.",
}
MOST_HITS: Final = 40
_EXCERPT: Final = 220


@dataclass(frozen=True, slots=True)
class Guide:
    """A document: name in its URL, purpose and page."""

    name: str
    purpose: str
    page: Page


@dataclass(frozen=True, slots=True)
class Hit:
    """A section that contains all searched words, with an excerpt."""

    guide: Guide
    section: Section
    excerpt: str


@cache
def guides() -> dict[str, Guide]:
    """Return all documents by name, guides in reading order, then decisions."""
    paths = [*sorted(FOLDER.glob("*.md"), key=lambda path: (*_ORDER, path.stem).index(path.stem))]
    paths += sorted((FOLDER / "decisions").glob("*.md"))
    return {
        path.stem: Guide(path.stem, _ORDER.get(path.stem, ""), read(path.read_text(encoding="utf-8"), address))
        for path in paths
    }


def address(target: str) -> str | None:
    """Return the URL of a link in a document; None if the target has no page."""
    if re.match(r"[a-z]+:|#", target):
        return target
    path, _, anchor = target.partition("#")
    file = PurePosixPath(path)
    if file.suffix == ".md" and any((folder / file.name).is_file() for folder in (FOLDER, FOLDER / "decisions")):
        return reverse("guide", args=[file.stem]) + (f"#{anchor}" if anchor else "")
    if file.parent.name == PICTURES.name and (PICTURES / file.name).is_file():
        return static(f"guides/{file.name}")
    return None


def search(text: str) -> list[Hit]:
    """Return up to MOST_HITS sections with all words, titles first."""
    words = text.casefold().split()
    if not words:
        return []
    ranked = []
    for guide in guides().values():
        for section in guide.page.sections:
            title, whole = section.title.casefold(), f"{section.title} {section.text}".casefold()
            if all(word in whole for word in words):
                missed = sum(word not in title for word in words)
                ranked.append((missed, Hit(guide, section, _around(section.text, words))))
    ranked.sort(key=lambda pair: pair[0])
    return [hit for _, hit in ranked[:MOST_HITS]]


def _around(text: str, words: list[str]) -> str:
    flat = " ".join(text.split())
    positions = [position for word in words if (position := flat.casefold().find(word)) >= 0]
    start = max(min(positions, default=0) - 60, 0)
    start = flat.rfind(" ", 0, start) + 1 if start else 0
    piece = flat[start : start + _EXCERPT]
    return f"{'… ' if start else ''}{piece}{' …' if start + _EXCERPT < len(flat) else ''}"
