"""A report as one reader sees it: its text, and its parts live or as they were when they were frozen."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from dashboard.charts.panel import Chart
from dashboard.reports.markdown import Block, Part, blocks, parts_of
from dashboard.reports.parts import Body, Source, errors_of
from experiments.errors import InvalidSpec
from experiments.models import Experiment, Report, ReportVersion

_STYLES: Final = ("report-file.css", "rankwire.css", "media.css", "reports.css")
_SCRIPTS: Final = ("print.js", "vendor/plotly/plotly-cartesian.min.js", "charts.js", "chart-files.js")
_ADDRESS: Final = re.compile(r"url\(\"?([^)\"]+)\"?\)")
NOT_FOR_YOU: Final = "A part stands here of an experiment that is not there, or not for you to read."


@dataclass(frozen=True)
class Shown:
    """A piece of a report: ``html`` of its text, or a part with what it shows, or ``why`` it shows nothing."""

    html: SafeString = field(default_factory=SafeString)
    part: Part | None = None
    experiments: Sequence[Experiment] = ()
    body: Body = field(default_factory=dict)
    charts: Sequence[Chart] = ()
    since: datetime | None = None
    """When a frozen part was frozen; None: it follows its experiment."""
    why: str = ""


def freeze(text: str, source: Source, before: Mapping[str, Any], *, anew: bool = False) -> dict[str, Any]:
    """Return the data of the frozen parts of a text: those that were frozen ``before`` stay as they are, unless asked ``anew``.

    Raise InvalidSpec with the lines of what is wrong in the text.
    """
    parts = parts_of(text)
    frozen: dict[str, Any] = {}
    now = timezone.now().isoformat()
    source.load(parts)
    for part in parts:
        if not part.frozen or part.key in frozen:
            continue
        experiments = source.experiments(part)
        kept = before.get(part.key)
        if kept is not None and (experiments is None or not anew):
            frozen[part.key] = kept
        elif experiments is not None:
            try:
                body = source.body(part)
            except LookupError:
                continue  # `checked` tells it at its line
            frozen[part.key] = {"at": now, "experiments": [each.pk for each in experiments], "body": body}
    return frozen


def checked(text: str, source: Source, known: str = "") -> None:
    """Raise InvalidSpec with the lines of all that is wrong in a text; parts that stood in the ``known`` text may be others'."""
    parts = parts_of(text)
    before = {part.key for part in parts_of(known)} if known else ()
    if errors := errors_of(parts, source, before):
        raise InvalidSpec(errors)


def shown(text: str, source: Source, frozen: Mapping[str, Any]) -> list[Shown]:
    """Return the pieces of a report in their order."""
    pieces = blocks(text)
    source.load(block for block in pieces if isinstance(block, Part))
    return [_shown(block, number, source, frozen) for number, block in enumerate(pieces)]


def live_and_frozen(pieces: Sequence[Shown]) -> dict[str, int]:
    """How many parts there are of each."""
    parts = [piece for piece in pieces if piece.part is not None]
    frozen = sum(piece.part is not None and piece.part.frozen for piece in parts)
    return {"parts": len(parts), "frozen": frozen, "live": len(parts) - frozen}


def _shown(block: Block, number: int, source: Source, frozen: Mapping[str, Any]) -> Shown:
    if not isinstance(block, Part):
        return Shown(html=mark_safe(block))  # noqa: S308 (made by markdown-it without HTML of the author)
    experiments = source.experiments(block)
    kept = frozen.get(block.key) if block.frozen else None
    if experiments is None or (kept and kept["experiments"] != [each.pk for each in experiments]):
        return Shown(part=block, why=NOT_FOR_YOU)
    try:
        body = kept["body"] if kept else source.body(block)
    except LookupError as error:
        words = str(error.args[0])
        return Shown(part=block, experiments=experiments, why=f"{words[:1].upper()}{words[1:]}.".replace("..", "."))
    since = datetime.fromisoformat(kept["at"]) if kept else None
    return Shown(part=block, experiments=experiments, body=body, charts=_charts(body, number), since=since)


def _charts(body: Body, number: int) -> list[Chart]:
    """The charts of a part under names that no other part of the page has."""
    return [Chart(f"part-{number}-{place}", **each) for place, each in enumerate(body.get("charts", ()))]


def one_file(report: Report, version: ReportVersion, pieces: Sequence[Shown]) -> str:
    """Return a report as one file that asks no network for anything. Parts that follow their experiments are in it as they are now."""
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
    found = finders.find(name)
    return (Path(found) if found else Path(settings.STATIC_ROOT) / name).read_bytes()
