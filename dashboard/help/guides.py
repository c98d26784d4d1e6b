"""The guides: every document of docs/, where it stands in the application, and the search over all of them."""

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
    "user-guide": "Experiments, trials, comparisons, predictions, projects: everything that the pages offer.",
    "workloads": "The programs that can be measured, and how to register one of your own.",
    "metrics": "Every metric with unit, direction, definition and source.",
    "terms": "What the words, states and marks of the pages mean.",
    "network": "The link between the hosts as a parameter.",
    "studies": "The published studies, and how to repeat them.",
    "rest": "The same from programs: addresses, tokens, errors.",
    "client": "The same in Python, and as a command for other machines.",
    "administrator": "Installing, clusters, people, keeping and growing.",
    "security": "Who is trusted with what, and what is defended against.",
    "architecture": "Where things are, and why.",
}
MOST_HITS: Final = 40
_EXCERPT: Final = 220


@dataclass(frozen=True, slots=True)
class Guide:
    """One document: its name in the address, what it is for, and the page."""

    name: str
    purpose: str
    page: Page


@dataclass(frozen=True, slots=True)
class Hit:
    """A section that holds every word that was asked for, with the text around the first."""

    guide: Guide
    section: Section
    excerpt: str


@cache
def guides() -> dict[str, Guide]:
    """Every document by name, the guides in the order of reading, the decisions last; read once for each process."""
    paths = [*sorted(FOLDER.glob("*.md"), key=lambda path: (*_ORDER, path.stem).index(path.stem))]
    paths += sorted((FOLDER / "decisions").glob("*.md"))
    return {
        path.stem: Guide(path.stem, _ORDER.get(path.stem, ""), read(path.read_text(encoding="utf-8"), address))
        for path in paths
    }


def address(target: str) -> str | None:
    """Where a link of a document leads in the application; None for files that are no documents."""
    if re.match(r"[a-z]+:|#", target):
        return target
    path, _, anchor = target.partition("#")
    named = PurePosixPath(path)
    if named.suffix == ".md" and any((folder / named.name).is_file() for folder in (FOLDER, FOLDER / "decisions")):
        return reverse("guide", args=[named.stem]) + (f"#{anchor}" if anchor else "")
    if named.parent.name == PICTURES.name and (PICTURES / named.name).is_file():
        return static(f"guides/{named.name}")
    return None


def search(text: str) -> list[Hit]:
    """Sections that hold all words of ``text``, those with them in their titles first; no more than MOST_HITS."""
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
    places = [place for word in words if (place := flat.casefold().find(word)) >= 0]
    start = max(min(places, default=0) - 60, 0)
    start = flat.rfind(" ", 0, start) + 1 if start else 0
    piece = flat[start : start + _EXCERPT]
    return f"{'… ' if start else ''}{piece}{' …' if start + _EXCERPT < len(flat) else ''}"
