"""A report as one file of HTML: text, numbers, style, fonts and the program that draws its charts; it asks no network for anything."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from django.conf import settings
from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from dashboard.reports.rendering import Shown
from experiments.models import Report, ReportVersion

_STYLES: Final = ("report-file.css", "rankwire.css", "media.css", "reports.css")
_SCRIPTS: Final = ("print.js", "vendor/plotly/plotly-cartesian.min.js", "charts.js", "chart-files.js")
_ADDRESS: Final = re.compile(r"url\(\"?([^)\"]+)\"?\)")


def one_file(report: Report, version: ReportVersion, pieces: Sequence[Shown]) -> str:
    """Return the file. Parts that follow their experiments are in it as they are now."""
    context = {
        "report": report,
        "version": version,
        "pieces": pieces,
        "file": True,
        "made_at": timezone.now(),
        "style": _style(),
        "scripts": _scripts(_SCRIPTS) if any(piece.charts for piece in pieces) else (),
        "theme": _scripts(("report-file.js",))[0],
    }
    return render_to_string("reports/file.html", context)


@lru_cache(maxsize=1)  # the files come with the program
def _style() -> SafeString:
    text = "\n".join(_read(name).decode() for name in _STYLES)
    return mark_safe(_ADDRESS.sub(_in_place, text).replace("</", "<\\/"))  # noqa: S308 (our own files)


def _in_place(match: re.Match[str]) -> str:
    """A file that a style sheet names, as an address that holds it."""
    if match[1].startswith("data:"):
        return match[0]
    kind = {"woff2": "font/woff2", "svg": "image/svg+xml"}[match[1].rpartition(".")[2]]
    return f'url("data:{kind};base64,{base64.b64encode(_read(match[1])).decode()}")'


@lru_cache(maxsize=2)
def _scripts(names: tuple[str, ...]) -> list[SafeString]:
    # Within a script element only its own end tag and the start of a comment mean anything to HTML.
    texts = (_read(name).decode().replace("</script", "<\\/script").replace("<!--", "<\\!--") for name in names)
    return [mark_safe(text) for text in texts]  # noqa: S308 (our own files)


def _read(name: str) -> bytes:
    """A static file, from the sources or from where they were collected."""
    found = finders.find(name)
    return (Path(found) if found else Path(settings.STATIC_ROOT) / name).read_bytes()
