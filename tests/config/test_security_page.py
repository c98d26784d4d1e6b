"""docs/explanation/security-tests.md: the tests that it names exist."""

from __future__ import annotations

import re

from config.services.lease import ROOT


def test_it_names_tests_that_exist() -> None:
    section = (ROOT / "docs/explanation/security-tests.md").read_text().split("## Tests")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    named = [re.findall(r"`(tests/[\w/]+/test_\w+\.py)`", row) for row in rows]
    assert rows
    assert all(named), "every attack has a test"
    without = [name for names in named for name in names if not _holds_a_test(name)]
    assert not without


def _holds_a_test(name: str) -> bool:
    file = ROOT / name
    return file.is_file() and re.search(r"^def test_", file.read_text(), re.MULTILINE) is not None
