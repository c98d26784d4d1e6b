"""Guides: the documents of docs/, their URLs and their search."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from django.conf import settings
from django.templatetags.static import static
from django.urls import reverse

from dashboard.help.markdown import Page, Section, read

FOLDER: Final = settings.BASE_DIR / "docs"
PICTURES: Final = FOLDER / "images"
INDEX: Final = "index"
"""Name of the document that lists the others."""
MOST_HITS: Final = 40
_EXCERPT: Final = 220


@dataclass(frozen=True, slots=True)
class Guide:
    """A document: name in its URL and page."""

    name: str
    page: Page


@dataclass(frozen=True, slots=True)
class Hit:
    """A section that contains all searched words, with an excerpt."""

    guide: Guide
    section: Section
    excerpt: str


@cache
def guides() -> dict[str, Guide]:
    """Return all documents by the names of their files, which are unique."""
    return {path.stem: Guide(path.stem, read(path.read_text(encoding="utf-8"), address)) for path in _paths()}


@cache
def _paths() -> tuple[Path, ...]:
    return tuple(sorted(FOLDER.rglob("*.md")))


def address(target: str) -> str | None:
    """Return the URL of a link in a document; None if the target has no page."""
    if re.match(r"[a-z]+:|#", target):
        return target
    path, _, anchor = target.partition("#")
    file = PurePosixPath(path)
    if file.suffix == ".md" and any(document.name == file.name for document in _paths()):
        return url_of(file.stem) + (f"#{anchor}" if anchor else "")
    if file.parent.name == PICTURES.name and (PICTURES / file.name).is_file():
        return static(f"guides/{file.name}")
    return None


def url_of(name: str) -> str:
    """Return the URL of a document."""
    return reverse("help") if name == INDEX else reverse("guide", args=[name])


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
