"""Steps of a journey in the documents: controls are bold, typed text is code."""

from __future__ import annotations

import re

from config.services.lease import ROOT

_DOCUMENTS = sorted([*(ROOT / "docs" / "tutorial").glob("*.md"), *(ROOT / "docs" / "how-to").glob("*.md")])
_SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_STEP = re.compile(r"^\d+\. .*(?:\n   .*)*", re.MULTILINE)


def _sections() -> dict[str, str]:
    return {title: body for document in _DOCUMENTS for title, body in _SECTION.findall(document.read_text())}


def steps(journey: str) -> list[str]:
    """Return the bold words and code of the numbered steps below a heading."""
    numbered = _STEP.findall(_sections().get(journey, ""))
    assert numbered, f"no page has the steps of {journey!r}"
    return [
        re.sub(r"\s+", " ", bold or code)
        for bold, code in re.findall(r"\*\*(.+?)\*\*|`(.+?)`", "\n".join(numbered), re.DOTALL)
    ]


def journeys() -> list[str]:
    """Return the headings of all sections whose steps press named controls."""
    return [title for title, body in _sections().items() if any("**" in step for step in _STEP.findall(body))]
