"""A report as one reader sees it: its text, and its parts live or as they were when they were frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from dashboard.charts.panel import Chart
from dashboard.reports.markdown import Block, Part, blocks, parts_of
from dashboard.reports.parts import Body, Source, errors_of
from experiments.errors import InvalidSpec
from experiments.models import Experiment

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
    return [
        Chart(
            element=f"part-{number}-{place}",
            title=each["title"],
            figure=each["figure"],
            published=each["published"],
            left_out=each["left_out"],
            subtitle=each["subtitle"],
            views=[(name, figure) for name, figure in each["views"]],
            logarithm=each["logarithm"],
            log_first=each["log_first"],
        )
        for place, each in enumerate(body.get("charts", ()))
    ]
