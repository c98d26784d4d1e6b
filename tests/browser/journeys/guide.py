"""Steps of a journey in docs/user-guide.md: controls are bold, typed text is code."""

from __future__ import annotations

import re

from config.services.lease import ROOT

HEADING = "## Journeys, step by step"


def steps(journey: str) -> list[str]:
    """The bold words and the code of the numbered steps below a journey's heading, in their order."""
    text = (ROOT / "docs" / "user-guide.md").read_text()
    section = text.partition(f"{HEADING}\n")[2].partition("\n## ")[0]
    body = section.partition(f"### {journey}\n")[2].partition("\n### ")[0]
    numbered = re.findall(r"^\d+\. .*(?:\n   .*)*", body, re.MULTILINE)
    assert numbered, f"the user guide does not tell {journey!r}"
    return [bold or code for bold, code in re.findall(r"\*\*(.+?)\*\*|`(.+?)`", "\n".join(numbered))]


def journeys() -> list[str]:
    """The headings of all journeys."""
    text = (ROOT / "docs" / "user-guide.md").read_text()
    return re.findall(r"^### (.+)$", text.partition(f"{HEADING}\n")[2].partition("\n## ")[0], re.MULTILINE)
