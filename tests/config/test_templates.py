"""How templates are laid out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from config.services.lease import ROOT

MOST_CHARACTERS = 140
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


@pytest.mark.parametrize("arguments", [("check",), ("--check",)], ids=["lint", "format"])
def test_the_formatter_finds_nothing_to_change(arguments: tuple[str, ...]) -> None:
    program = Path(sys.executable).with_name("djangofmt")
    result = subprocess.run([program, *arguments, "templates"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_line_runs_on(file: Path) -> None:
    """The formatter wraps at 120 and cannot break a tag of Django."""
    alone = re.compile(r'[\w-]+="[^"]*"|(?:\{%[^%]*%\})+')
    lines = [line.strip() for line in file.read_text().splitlines() if len(line) > MOST_CHARACTERS]
    assert [line for line in lines if not alone.fullmatch(line)] == []
