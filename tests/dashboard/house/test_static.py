"""Templates, icons and styles belong together."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles.finders import find
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


def test_it_keeps_every_page_in_a_folder_of_its_name():
    """The root contains shared files, and files that Django expects there."""
    root = {file.name for file in TEMPLATES.glob("*.html") if not file.name.startswith("_")}
    assert root == {"base.html", "403.html", "403_csrf.html", "404.html", "500.html"}


def test_it_finds_every_class_of_a_template_in_a_style_sheet():
    texts = "".join(file.read_text() for file in TEMPLATES.rglob("*.html"))
    used = set()
    for value in re.findall(r'\bclass="((?:{{.*?}}|{%.*?%}|[^"])*)"', texts):
        words = re.sub(r"\S*{{.*?}}\S*", " ", re.sub(r"{%.*?%}", " ", value)).split()
        used.update(words)
    assert used - _classes(*STATIC.glob("*.css"), find("vendor/tabler.css")) == set()


def test_it_uses_every_class_of_our_style_sheets():
    base = Path(settings.BASE_DIR)
    sources = [*TEMPLATES.rglob("*.html"), *STATIC.glob("*.js"), *(base / "dashboard").rglob("*.py")]
    sources.append(base / "experiments" / "models" / "states.py")  # the tones of states are classes
    words = {word for file in sources for word in re.findall(r"[\w-]+", file.read_text())}
    unused = _classes(*STATIC.glob("*.css")) - words
    assert {name for name in unused if not name.startswith("series-")} == set()


def _classes(*sheets):
    texts = (
        re.sub(r'/\*.*?\*/|url\([^)]*\)|"[^"]*"', "", Path(sheet).read_text(), flags=re.DOTALL) for sheet in sheets
    )
    return {name for text in texts for name in re.findall(r"\.([a-zA-Z][\w-]*)", text)}


def test_it_finds_every_token_that_a_figure_names_in_the_stylesheet():
    expected = set(re.findall(r"(--[\w-]+):", (STATIC / "rankwire.css").read_text()))
    sources = [*Path(settings.BASE_DIR, "dashboard/charts").glob("*.py"), STATIC / "charts.js"]
    named = {t for s in sources for t in re.findall(r'"(--[a-z][\w-]*)', s.read_text())}
    assert named - expected <= {"--seq", "--div"}
