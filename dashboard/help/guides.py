"""Guides: the documents of docs/, their URLs and their search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from django.conf import settings
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from dashboard.help.markdown import Page, Section, read

FOLDER: Final = settings.BASE_DIR / "docs"
PICTURES: Final = FOLDER / "images"
INDEX: Final = "index"
"""Name of the document that lists the others."""
CHANGELOG: Final = settings.BASE_DIR / "CHANGELOG.md"
SEARCH_WORDS: Final = "search-words"
"""Name of the table of words that users type, and the pages that answer them."""
MOST_HITS: Final = 40
MOST_CHARACTERS: Final = 200
"""Of a search: each word is compared with each section."""
_FOLDERS: Final = {"how-to": 0, "tutorial": 0, "docs": 0, "reference": 1, "explanation": 2, "decisions": 3}
_EXCERPT: Final = 220
_ANSWER: Final = 12
"""Score of a page of the search words, as of a title with all words in a how-to page."""
_HYPHENS: Final = re.compile("[-\u2010-\u2015]")
"""Hyphens and dashes, which separate words: pages write "Karp–Flatt", users "karp-flatt"."""
_EXAMPLE_ADDRESS: Final = re.compile(r"http://127\.0\.0\.1:8000(?=/api/|/client/| RANKWIRE_TOKEN=| rankwire )")
"""Address of a site in examples of REST and of the client, not in those of a proxy or a setting."""


@dataclass(frozen=True, slots=True)
class Guide:
    """A document: name in its URL and page."""

    name: str
    folder: str
    page: Page


@dataclass(frozen=True, slots=True)
class Hit:
    """A section that answers the searched words, with an excerpt."""

    guide: Guide
    section: Section
    excerpt: str


@cache
def guides() -> dict[str, Guide]:
    """Return all documents and the changelog by the unique names of their files."""
    return {
        path.stem.lower(): Guide(path.stem.lower(), path.parent.name, read(path.read_text(encoding="utf-8"), address))
        for path in _paths()
    }


@cache
def _paths() -> tuple[Path, ...]:
    return (*sorted(FOLDER.rglob("*.md")), CHANGELOG)


def address(target: str) -> str | None:
    """Return the URL of a link in a document; None if the target has no page."""
    if re.match(r"[a-z]+:|#", target):
        return target
    path, _, anchor = target.partition("#")
    file = PurePosixPath(path)
    if file.suffix == ".md" and any(document.name == file.name for document in _paths()):
        return url_of(file.stem.lower()) + (f"#{anchor}" if anchor else "")
    if file.parent.name == PICTURES.name and (PICTURES / file.name).is_file():
        return static(f"guides/{file.name}")
    return None


def url_of(name: str) -> str:
    """Return the URL of a document."""
    return reverse("help") if name == INDEX else reverse("guide", args=[name])


def with_address(page: Page, address: str) -> SafeString:
    """Return the text of a page; its examples call the site at ``address``."""
    return mark_safe(_EXAMPLE_ADDRESS.sub(lambda _: escape(address), page.html))  # noqa: S308 (the page is escaped)


def search(text: str) -> list[Hit]:
    """Return up to MOST_HITS sections: of the search words, then those with all words.

    Titles precede texts, and how-to pages the other folders. A hit with less than half of the best score is dropped.
    """
    text = text[:MOST_CHARACTERS]
    words = list(dict.fromkeys(_HYPHENS.sub(" ", text.casefold()).split()))
    if not words:
        return []
    phrases = sorted(_by_search_words().items(), key=lambda row: -len(row[0]))
    plain = f" {_plain_words(text)} "
    matching: list[tuple[str, list[Hit]]] = []
    for phrase, hits in phrases:  # longest first: "node" adds nothing to "slow node"
        if f" {phrase} " in plain and not any(f" {phrase} " in f" {longer} " for longer, _ in matching):
            matching.append((phrase, hits))
    answers = [_matched(hit, words) for _, hits in matching for hit in hits]
    first = list({id(hit.section): hit for hit in answers}.values())
    answering, ranked = {id(hit.section) for hit in first}, []
    for guide in guides().values():
        for section in guide.page.sections:
            if guide.name in (INDEX, SEARCH_WORDS, CHANGELOG.stem.lower()) or id(section) in answering:
                continue
            whole = f"{section.title} {section.text}".casefold()
            if all(word in whole for word in words):
                flat = " ".join(text_of(section).split())
                near = _near(f"{flat} {section.title}", words)
                titles = 6 * _share(section.title, words) + 3 * _share(guide.page.title, words)
                score = titles + min(len(near), 3) + 3 - _FOLDERS[guide.folder]
                ranked.append(
                    (
                        _plain_words(_label(section)) == plain.strip(),
                        score,
                        Hit(
                            guide,
                            section,
                            _around(flat, [at for at in near if at < len(flat)] or _places(flat, words[0])),
                        ),
                    )
                )
    ranked.sort(key=lambda row: (-row[0], -row[1]))  # the definition of the words first
    of_answer = _ANSWER * len(matching[0][0].split()) / len(words) if matching else 0.0
    least = max([of_answer, *(score for _, score, _ in ranked)]) / 2
    return [*first, *(hit for _, score, hit in ranked if score >= least)][:MOST_HITS]


def _matched(hit: Hit, words: Sequence[str]) -> Hit:
    """Return a hit with the sentence of the table, else its text around the match."""
    if hit.excerpt:
        return hit
    text = text_of(hit.section)
    near = [] if _share(hit.section.title, words) == 1 else _near(" ".join(text.split()), words)
    return replace(hit, excerpt=_around(text, near))


def _share(title: str, words: Sequence[str]) -> float:
    """Return the share of the words that begin a word of a title."""
    return sum(bool(_places(title, word)) for word in words) / len(words)


def _places(text: str, word: str) -> list[int]:
    """Return where a word begins a word of a text, or a part of an identifier."""
    return [match.start() for match in re.finditer(rf"(?<![^\W_]){re.escape(word)}", text, re.IGNORECASE)]


def _near(text: str, words: Sequence[str]) -> list[int]:
    """Return the places of the first word that have all others within an excerpt."""
    first, *others = (_places(text, word) for word in words)
    return [at for at in first if all(any(abs(at - to) < _EXCERPT for to in places) for places in others)]


def similar_words(text: str) -> list[str]:
    """Return up to three search words that are spelled like a text."""
    return get_close_matches(_plain_words(text[:MOST_CHARACTERS]), _by_search_words(), cutoff=0.8)


@cache
def _by_search_words() -> dict[str, list[Hit]]:
    """Return words -> the pages that docs/reference/search-words.md links for them."""
    text = next(path for path in _paths() if path.stem == SEARCH_WORDS).read_text(encoding="utf-8")
    hits: dict[str, list[Hit]] = {}
    for words, answer in re.findall(r"^\| (.+?) \| (.*\]\(.*) \|$", text, re.MULTILINE):
        links = re.findall(r"\[(.+?)\]\((.+?)\)", answer)
        sentence = re.sub(r"\[(.+?)\]\(.+?\)", r"\1", answer).replace("*", "").replace("`", "")
        # One hit shows the sentence, if it says more than its title; the others show their own text.
        first = sentence if sentence != links[0][0] else ""
        answers = [_linked(target, "" if n else first) for n, (_, target) in enumerate(links)]
        hits |= {_plain_words(word): answers for word in words.split(",")}
    return hits


def _linked(target: str, sentence: str) -> Hit:
    path, _, anchor = target.partition("#")
    guide = guides()[PurePosixPath(path).stem.lower()]
    section = next(section for section in guide.page.sections if not anchor or section.anchor == anchor)
    return Hit(guide, section, sentence)


def _plain_words(text: str) -> str:
    """Return words without case, hyphens and the s of a plural."""
    return " ".join(word.removesuffix("s") for word in _HYPHENS.sub(" ", text.casefold()).split())


def text_of(section: Section) -> str:
    """Return the text of a section; of a defining row without id and label."""
    if section.level:
        return section.text
    return section.text.removeprefix(section.anchor).strip().removeprefix(_label(section)).strip()


def _label(section: Section) -> str:
    return section.title.removesuffix(f" ({section.anchor})")


def _around(text: str, places: Sequence[int]) -> str:
    flat = " ".join(text.split())
    start = max(min(places, default=0) - 60, 0)
    start = flat.rfind(" ", 0, start) + 1 if start else 0
    piece = flat[start : start + _EXCERPT]
    return f"{'… ' if start else ''}{piece}{' …' if start + _EXCERPT < len(flat) else ''}"
