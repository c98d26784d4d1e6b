"""How templates are laid out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.template import engines
from django.template.loader import get_template

from config.services.lease import ROOT
from config.template_sources import Loader, unindented

MOST_CHARACTERS = 140
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


@pytest.mark.parametrize("arguments", [("check",), ("--check",)], ids=["lint", "format"])
def test_the_formatter_finds_nothing_to_change(arguments: tuple[str, ...]) -> None:
    program = Path(sys.executable).with_name("djangofmt")
    result = subprocess.run([program, *arguments, "templates"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_line_runs_on(file: Path) -> None:
    """The formatter wraps at 120 and cannot break a tag of Django; an attribute alone on its line has no other place."""
    attribute = re.compile(r'[\w-]+="[^"]*"')
    lines = [line.strip() for line in file.read_text().splitlines() if len(line) > MOST_CHARACTERS]
    assert [line for line in lines if not attribute.fullmatch(line)] == []


@pytest.mark.parametrize(
    ("source", "sent"),
    [
        ("<ul>\n  <li>\n\t\tone</li>\n</ul>\n", "<ul>\n<li>\none</li>\n</ul>\n"),
        ("<p>one  two\n    three</p>", "<p>one  two\nthree</p>"),
        ("<div>\n  <pre>\n  a\n    b</pre>\n  </div>", "<div>\n<pre>\n  a\n    b</pre>\n</div>"),
        ("<textarea\n  rows=2>\n  a</textarea>\n  <b>", "<textarea\n  rows=2>\n  a</textarea>\n<b>"),
    ],
)
def test_lines_begin_at_their_first_letter(source: str, sent: str) -> None:
    assert unindented(source) == sent
    assert unindented(source).count("\n") == source.count("\n"), "errors name the lines of the source"


def test_every_page_is_made_of_such_templates() -> None:
    (loader,) = engines["django"].engine.template_loaders
    assert isinstance(loader.loaders[0], Loader)
    assert "\n  " not in get_template("experiment/_table.html").template.source
