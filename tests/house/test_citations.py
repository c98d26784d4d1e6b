"""Files that code and documents cite are in the repository."""

from __future__ import annotations

import re

from config.services.lease import ROOT
from tests.house.repository import tracked

FILES = [f"/{path}" for path in tracked()]
EXAMPLES = {"MISSING.md", "water.md"}
"""Names in tests of files that are not in the repository."""

_DOCUMENT = re.compile(r"(?<![\w./<>{}-])[\w./-]+\.md\b")
_SOURCE = re.compile(r"`([\w./-]+\.(?:py|html|js|css|toml|lock|sh))`")


def is_in_repository(cited: str) -> bool:
    name = "/" + cited.lstrip("./")
    return any(file.endswith(name) or name.endswith(file) for file in FILES)


def missing(citation: re.Pattern[str], *patterns: str) -> list[str]:
    """Return citations of files that do not exist, with file and line."""
    return [
        f"{path}:{number}: {cited}"
        for path in tracked(*patterns)
        for number, line in enumerate((ROOT / path).read_text().splitlines(), start=1)
        for cited in citation.findall(line)
        if cited not in EXAMPLES and not is_in_repository(cited)
    ]


def test_cited_documents_exist() -> None:
    assert missing(_DOCUMENT, "*.py", "*.md", "*.html", "*.js", "*.toml", "*.service", "script/*") == []


def test_source_files_that_documents_cite_exist() -> None:
    assert missing(_SOURCE, "*.md", ":!CHANGELOG.md") == []


def test_citations_of_missing_documents_are_found() -> None:
    assert _DOCUMENT.findall("see (MISSING.md section 2), reports/<pk>/report.md and docs/reference/rest.md.") == [
        "MISSING.md",
        "docs/reference/rest.md",
    ]
    assert [is_in_repository(cited) for cited in ("MISSING.md", "docs/reference/rest.md", "../rest.md")] == [
        False,
        True,
        True,
    ]
