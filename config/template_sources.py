"""Templates without the white space that lays out their sources: it was a fifth of a large page."""

from __future__ import annotations

import re
from typing import Final

from django.template import Origin
from django.template.loaders import filesystem

_AS_WRITTEN: Final = re.compile(r"(<(?:pre|textarea)\b.*?</(?:pre|textarea)>)", re.DOTALL)
"""Elements whose white space is shown."""
_INDENT: Final = re.compile(r"\n[ \t]+")


class Loader(filesystem.Loader):
    """Reads templates from the project's directories; lines keep their numbers, so that errors name the right ones."""

    def get_contents(self, origin: Origin) -> str:
        """The source of a template; HTML without indentation."""
        source: str = super().get_contents(origin)
        return unindented(source) if origin.name.endswith(".html") else source


def unindented(source: str) -> str:
    """Return HTML whose lines begin at their first letter, but for those of elements that show how they begin."""
    parts = _AS_WRITTEN.split(source)  # every second one is such an element
    return "".join(part if at % 2 else _INDENT.sub("\n", part) for at, part in enumerate(parts))
