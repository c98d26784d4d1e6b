"""Tutorials and how-to pages as data: code blocks, names of controls, and steps.

In the numbered steps controls are bold and typed text is code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from config.services.lease import ROOT

DOCUMENTS = sorted([*(ROOT / "docs" / "tutorial").glob("*.md"), *(ROOT / "docs" / "how-to").glob("*.md")])
_SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_STEP = re.compile(r"^\d+\. .*(?:\n   .*)*", re.MULTILINE)
_WORD = re.compile(r"\*\*(.+?)\*\*|`(.+?)`", re.DOTALL)


STEPS: Final = {
    "2. Register the program": ("/", "Heat equation"),
    "Invite a user": ("/", "Send this link to one user"),
    "Create an account": ("/", "mira2 has an account"),
    "Choose mails": ("/", "saved"),
    "Filter a list and save the view": ("/", "Two hosts or more"),
    "Plot a metric": ("/", "match"),
    "Export an experiment": ("/experiments/SLUG/", "Bundle"),
    "Share an experiment": ("/experiments/SLUG/", "Copy the link now"),
    "Study the network needs of an experiment": ("/experiments/SLUG/", "Estimated time"),
}
"""Headings above steps -> the page on which the steps begin, and a text of the page to which they lead."""


@dataclass(frozen=True, slots=True)
class Block:
    """A code block with its language (`sh` by default) and its file name or "".

    The line that opens a fence has both.
    """

    language: str
    file: str
    text: str


def blocks(document: Path) -> list[Block]:
    tokens = MarkdownIt().parse(document.read_text())
    codes = [(token.info.split(), token.content) for token in tokens if token.type in ("fence", "code_block")]
    return [Block(*[*info, "", ""][:2], text) if info else Block("sh", "", text) for info, text in codes]


def controls(document: Path) -> set[str]:
    """Return the words in italics or in bold: texts of Rankwire's own pages.

    Without the bold words of steps, which tests press.
    """
    text = _STEP.sub(lambda step: step[0].replace("**", ""), document.read_text())
    return {re.sub(r"\s+", " ", words) for words in _emphasised(MarkdownIt().parse(text))}


def _emphasised(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        words = None
        for part in token.children or []:
            if part.type in ("em_open", "strong_open"):
                words = ""
            elif part.type in ("em_close", "strong_close"):
                yield words or ""
                words = None
            elif words is not None:
                words += part.content or " "


def instructions(heading: str) -> list[tuple[str, str]]:
    """Return the bold words and the code of the numbered steps below a heading.

    One of each pair is empty.
    """
    numbered = _STEP.findall(_sections().get(heading, ""))
    assert numbered, f"no page has the steps of {heading!r}"
    plain = re.sub(r"\s+", " ", "\n".join(numbered))
    return _WORD.findall(plain)


def steps(heading: str) -> list[str]:
    return [control or typed for control, typed in instructions(heading)]


def journeys() -> list[str]:
    """Return the headings of all sections whose steps press named controls."""
    return [title for title, body in _sections().items() if any("**" in step for step in _STEP.findall(body))]


def _sections() -> dict[str, str]:
    return {title: body for document in DOCUMENTS for title, body in _SECTION.findall(document.read_text())}
