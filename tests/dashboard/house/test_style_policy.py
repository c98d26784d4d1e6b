"""Templates comply with a strict content security policy (no inline code)."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.conf import settings

TEMPLATES = Path(settings.BASE_DIR) / "templates"
ONE_FILE = "reports/file.html"
"""Downloaded files contain their styles and scripts, under their policy."""
FILES = sorted(set(TEMPLATES.rglob("*.html")) - {TEMPLATES / ONE_FILE})


class Markup(HTMLParser):
    """Collect inline styles and scripts, which belong in files of static/."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inline: list[str] = []
        # A tag of Django inside of an element's tag hides the attributes from a parser of HTML.
        self.feed(re.sub(r"{%.*?%}|{{.*?}}", " ", text))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.inline += [f"<{tag} {name}>" for name in named if name == "style" or name.startswith(("on", "hx-on"))]
        self.inline += [
            f"<{tag} {name}>" for name, value in attributes if (value or "").strip().startswith("javascript:")
        ]
        if tag == "style" or (tag == "script" and "src" not in named and named.get("type") != "application/json"):
            self.inline.append(f"<{tag}>")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(TEMPLATES)))
def test_it_keeps_a_template_free_of_inline_styles_and_handlers(file):
    assert Markup(file.read_text()).inline == []


@pytest.mark.parametrize(
    "text",
    [
        '<p {% if a %}class="b"{% endif %} style="margin:0">',
        '<select onchange="go()">',
        '<a href="javascript:go()">',
        '<b hx-on:click="go()">',
        "<style>p { margin: 0 }</style>",
        "<script>go()</script>",
    ],
)
def test_it_sees_what_is_inline(text):
    assert len(Markup(text).inline) == 1


def test_it_keeps_markup_made_in_python_and_in_scripts_free_of_inline_styles():
    for file in [*Path(settings.BASE_DIR, "dashboard").rglob("*.py"), *Path(settings.BASE_DIR, "static").glob("*.js")]:
        assert not re.search(r"""<\w[^<>]*\sstyle\s*=|<style|setAttribute\(\s*["']style""", file.read_text()), file


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(TEMPLATES)))
def test_no_footer_is_text_alone(file):
    """A footer of a panel without an element is hidden: what it includes may be empty."""
    footers = re.findall(r"(?s)<footer[^>]*>(.*?)</footer>", file.read_text())
    assert [text for text in footers if not re.search(r"<\w|{% include ", text)] == []
