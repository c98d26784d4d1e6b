"""Reports as a user may see them, as a page or one file."""

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
from dashboard.reports.markdown import FIELD, Block, Part, blocks, parts_of
from dashboard.reports.parts import Body, Source, errors_of
from experiments.errors import FieldError, InvalidSpec
from experiments.models import Experiment, Report, ReportVersion
from experiments.selectors.quotas import free_bytes

_STYLES: Final = ("report-file.css", "rankwire.css", "media.css", "reports.css")
_SCRIPTS: Final = ("print.js", "vendor/plotly.js", "charts.js", "chart-files.js")
_ADDRESS: Final = re.compile(r"url\(\"?([^)\"]+)\"?\)")
NOT_FOR_YOU: Final = (
    "This part is hidden: its experiment was deleted, or you may not read it. "
    "Owners can restore a deleted experiment from the trash."
)
IN_TRASH: Final = "This part is hidden: its experiment is in the trash."


@dataclass(frozen=True)
class Piece:
    """Text of a report, a part with its contents, or ``why`` a part is hidden."""

    html: SafeString = field(default_factory=SafeString)
    part: Part | None = None
    experiments: Sequence[Experiment] = ()
    body: Body = field(default_factory=dict)
    charts: Sequence[Chart] = ()
    since: datetime | None = None
    """Time at which the part was frozen; None if it is live."""
    why: str = ""
    is_in_trash: bool = False
    """True if the user may restore the experiment of a hidden part."""


def freeze(text: str, source: Source, before: Mapping[str, Any], *, anew: bool = False) -> dict[str, Any]:
    """Return the data of frozen parts; keep those frozen ``before`` unless ``anew``.

    Raise InvalidSpec with the line of each error.
    """
    parts = parts_of(text)
    frozen: dict[str, Any] = {}
    now = timezone.now().isoformat()
    source.load(parts)
    for part in parts:
        if not part.frozen or part.key in frozen:
            continue
        experiments = source.experiments(part)
        stored = before.get(part.key)
        if stored is not None and (experiments is None or not anew):
            frozen[part.key] = stored
        elif experiments is not None:
            try:
                body = source.body(part)
            except LookupError:
                continue  # reported by `check_text`
            frozen[part.key] = {"at": now, "experiments": [experiment.pk for experiment in experiments], "body": body}
    return frozen


def check_text(text: str, source: Source, previous: str = "") -> None:
    """Raise InvalidSpec with the line of each error; ``previous`` parts may be hidden.

    Versions count in no quota: they keep the reserve of the disk.
    """
    if free_bytes() < 0:
        raise InvalidSpec([FieldError(FIELD, "cannot be saved: the disk of this installation is full")])
    parts = parts_of(text)
    before = {part.key for part in parts_of(previous)} if previous else ()
    if errors := errors_of(parts, source, before):
        raise InvalidSpec(errors)


def pieces_of(text: str, source: Source, frozen: Mapping[str, Any]) -> list[Piece]:
    """Return the pieces of a report in order."""
    pieces = blocks(text)
    source.load(block for block in pieces if isinstance(block, Part))
    return [_piece(block, number, source, frozen) for number, block in enumerate(pieces)]


def live_and_frozen(pieces: Sequence[Piece]) -> dict[str, int]:
    """Return the number of live, frozen and all parts."""
    parts = [piece for piece in pieces if piece.part is not None]
    frozen = sum(piece.part is not None and piece.part.frozen for piece in parts)
    return {"parts": len(parts), "frozen": frozen, "live": len(parts) - frozen}


def _piece(block: Block, number: int, source: Source, frozen: Mapping[str, Any]) -> Piece:
    if not isinstance(block, Part):
        return Piece(html=mark_safe(block))  # noqa: S308 (made by markdown-it without HTML of the author)
    stored = frozen.get(block.key) if block.frozen else None
    # Other experiments may match a query since it was frozen, and its own ones no longer.
    experiments = source.visible(stored["experiments"]) if stored and block.query else source.experiments(block)
    if stored:
        is_hidden = not {*stored["experiments"]} <= {experiment.pk for experiment in experiments or ()}
    else:
        is_hidden = experiments is None and not block.query
    if is_hidden:
        is_in_trash = source.is_in_trash(block)
        return Piece(part=block, why=IN_TRASH if is_in_trash else NOT_FOR_YOU, is_in_trash=is_in_trash)
    try:
        body = stored["body"] if stored else source.body(block)
    except LookupError as error:
        words = str(error.args[0])
        return Piece(
            part=block, experiments=experiments or (), why=f"{words[:1].upper()}{words[1:]}.".replace("..", ".")
        )
    since = datetime.fromisoformat(stored["at"]) if stored else None
    return Piece(part=block, experiments=experiments or (), body=body, charts=_charts(body, number), since=since)


def _charts(body: Body, number: int) -> list[Chart]:
    """Return the charts of a part with names that are unique on the page."""
    return [Chart(f"part-{number}-{index}", **chart) for index, chart in enumerate(body.get("charts", ()))]


def one_file(report: Report, version: ReportVersion, pieces: Sequence[Piece]) -> str:
    """Return a report as one HTML file without references to the network."""
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


@lru_cache(maxsize=1)
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
    # Within a script element HTML only parses its end tag and the start of a comment.
    texts = (_read(name).decode().replace("</script", "<\\/script").replace("<!--", "<\\!--") for name in names)
    return [mark_safe(text) for text in texts]  # noqa: S308 (our own files)


def _read(name: str) -> bytes:
    source = finders.find(name)
    return (Path(source) if source else Path(settings.STATIC_ROOT) / name).read_bytes()
