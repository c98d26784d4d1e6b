"""Templates, icons and styles belong together."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template.loader import get_template

from dashboard.states import CHIPS

TEMPLATES = Path(settings.BASE_DIR) / "templates"
STATIC = Path(settings.BASE_DIR) / "static"


def test_it_finds_every_icon_that_is_used_in_the_sprite_and_no_other():
    texts = "".join(file.read_text() for file in TEMPLATES.rglob("*.html"))
    used = set(re.findall(r'{% icon "([\w-]+)" %}', texts))
    used |= {chip.icon for chip in CHIPS.values()}
    assert set(re.findall(r'<symbol id="([\w-]+)"', (STATIC / "icons.svg").read_text())) == used


@pytest.mark.parametrize("file", sorted(TEMPLATES.rglob("*.html")), ids=lambda file: str(file.relative_to(TEMPLATES)))
def test_it_compiles_every_template(file):
    assert get_template(str(file.relative_to(TEMPLATES)))


def test_it_finds_every_token_that_a_figure_names_in_the_stylesheet():
    known = set(re.findall(r"(--[\w-]+):", (STATIC / "rankwire.css").read_text()))
    sources = [*Path(settings.BASE_DIR, "dashboard/charts").glob("*.py"), STATIC / "charts.js"]
    named = {t for s in sources for t in re.findall(r'"(--[a-z][\w-]*)', s.read_text())}
    assert named - known <= {"--seq", "--div"}
