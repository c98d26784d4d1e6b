"""The table of a comparison: informative metrics, and folds of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analysis import numbers
from analysis.statistics import Comparison, SampleSummary
from dashboard.charts.parts import Scale
from dashboard.panels.compare.sentences import no_verdict
from dashboard.panels.compare.work import different_work
from experiments.metrics import HEADLINE, described
from experiments.selectors.comparison import Compared, MetricRow, verdict_words

_LOOKS = {
    "better": ("ok", "check", ""),
    "worse": ("bad", "x", ""),
    "more": ("", "", "▲"),
    "less": ("", "", "▼"),
}
"""(Tone, icon, arrow) of a verdict."""
_TRIVIAL = 0.01
"""A relative change below this is too small to be called an effect."""


@dataclass(frozen=True, slots=True)
class Folded:
    """Rows behind one line with their number and reason."""

    element: str
    title: str
    rows: Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Table:
    """Visible rows, and folds of rows with little information."""

    rows: Sequence[dict[str, Any]]
    folded: Sequence[Folded]
    is_different_work: bool = False
    """Nothing is judged, and rows are only in a fold."""


def table(compared: Compared) -> Table:
    """Sort every metric into the table or a fold."""
    widest, is_judged = _widest(compared), not different_work(compared)
    on_both_sides = [row for row in compared.rows if row.compared]
    key = {*HEADLINE, *compared.series}
    changed = [row for row in on_both_sides if row.metric in key or _changed(row)]
    if not changed:
        changed = [row for row in on_both_sides if not row.same]
    rest = [row for row in on_both_sides if row not in changed]
    trivial = [row for row in rest if _is_clear(row)]
    unclear = [row for row in rest if not (row.same or row in trivial)]
    of_different_work = [] if is_judged else changed
    changed = changed if is_judged else []
    folds = (
        ("different-work", "Of different work, not comparable", of_different_work),
        ("trivial", f"Clear changes below {numbers.amount(_TRIVIAL, numbers.SHARE)}", trivial),
        ("unclear", "No clear change, or too few trials for a verdict", unclear),
        ("same", "The same number in every counted trial", [row for row in rest if row.same]),
        ("one-sided", "Not measured on both sides", [row for row in compared.rows if not row.compared]),
    )
    folded = []
    for element, title, metrics in folds:
        if metrics:
            title = f"{title}: {numbers.plural(len(metrics), 'metric')}"
            folded.append(
                Folded(element, title, [_metric_row(row, compared, widest, is_judged=is_judged) for row in metrics])
            )
    if compared.excluded:
        title = (
            f"Excluded, as the captures of these trials are flagged: {numbers.plural(len(compared.excluded), 'metric')}"
        )
        folded.append(Folded("excluded", title, [_excluded_row(name, compared) for name in compared.excluded]))
    visible = [_metric_row(row, compared, widest, is_judged=is_judged) for row in changed]
    return Table(visible, folded, is_different_work=not is_judged)


def _is_clear(row: MetricRow) -> bool:
    return any(c.verdict in ("higher", "lower") for c in row.against if c)


def _changed(row: MetricRow) -> bool:
    """Return whether a clear change is large enough to be called an effect."""
    return any(c.verdict in ("higher", "lower") and not _is_trivial(c) for c in row.against if c)


def _is_trivial(comparison: Comparison) -> bool:
    return comparison.ratio is not None and abs(comparison.ratio - 1) < _TRIVIAL


def stated_by(compared: Compared, places: Sequence[int]) -> str:
    """Return one member by letter and name, several by letters: 'A and C'."""
    members = [compared.members[index] for index in places]
    if len(members) == 1:
        return f"{members[0].label} ({members[0].name})"
    return f"{', '.join(m.label for m in members[:-1])} and {members[-1].label}"


def _widest(compared: Compared) -> float:
    """Return the percentage at the ends of the bars: a quantile, despite outliers."""
    changes = sorted(abs(c.ratio - 1) * 100 for row in compared.rows for c in row.against if c and c.ratio is not None)
    return max(5.0, min(200.0, changes[int(0.9 * (len(changes) - 1))] * 1.3)) if changes else 5.0


def _metric_row(row: MetricRow, compared: Compared, widest: float, *, is_judged: bool) -> dict[str, Any]:
    """Return a table row: the value of each member, and its change."""
    scale = Scale.of([s.median for s in row.summaries if s], row.unit)
    values, against = [], []
    for number, (member, summary) in enumerate(zip(compared.members, row.summaries, strict=True)):
        values.append({"of": member.label, **_value(summary, scale)})
        if member is not compared.baseline:
            name = f"{member.label} against {compared.baseline.label}"
            against.append((name, _against(row, number, widest, is_judged=is_judged)))
    return {"row": row, "unit": scale.unit, "values": values, "against": against, "changed": _changed(row)}


def _excluded_row(metric: str, compared: Compared) -> dict[str, Any]:
    """Return a table row of a metric of which only flagged captures have values."""
    empty = (None,) * len(compared.members)
    row = MetricRow(metric, described(metric).label, "", "", empty, empty)
    return _metric_row(row, compared, 1.0, is_judged=False) | {"why": "traffic of flagged trials is excluded"}


def _value(summary: SampleSummary | None, scale: Scale) -> dict[str, Any]:
    if summary is None:
        return {}
    ends = numbers.between(scale(summary.minimum), scale(summary.maximum), digits=4) if summary.n > 1 else ""
    return {"median": numbers.significant(scale(summary.median)), "range": ends, "outliers": len(summary.outliers)}


def _against(row: MetricRow, number: int, widest: float, *, is_judged: bool) -> dict[str, Any] | None:
    comparison = row.against[number]
    if comparison is None:
        return None
    words, interval = verdict_words(comparison, row.direction) if is_judged else "", comparison.ratio_interval
    ends = None if interval is None or interval.low is None or interval.high is None else (interval.low, interval.high)
    ratio, p, delta = comparison.ratio, comparison.p_adjusted, comparison.cliffs_delta
    tone, icon, arrow = _LOOKS.get(words, ("", "", ""))
    change, *bounds = numbers.changes(ratio, *(ends or ()))
    return {
        "change": change,
        "ratio": "" if ratio is None or change.endswith("×") else numbers.times(ratio),
        "interval": " to ".join(bounds),
        "bar": None if ends is None or ratio is None else _bar(ratio, ends, widest),
        "words": no_verdict(comparison) if words == "too few repetitions" else words,
        "tone": tone,
        "icon": icon,
        "arrow": arrow,
        "p": "" if p is None or not is_judged else f"p = {numbers.significant(p, 3)}",
        "effect": ""
        if delta is None or not is_judged or _is_trivial(comparison)
        else f"{comparison.effect} effect, Cliff's delta {numbers.signed(delta, 2)}",
        "test": comparison.test if is_judged else "",
    }


def _bar(ratio: float, ends: tuple[float, float], widest: float) -> dict[str, Any]:
    """Return bar positions in percent of the width, with cut ends marked."""

    def position(value: float) -> float:
        return 50 + 50 * max(-1.0, min(1.0, (value - 1) * 100 / widest))

    low, high = position(ends[0]), position(ends[1])
    beyond = "left" if (ends[0] - 1) * 100 < -widest else "right" if (ends[1] - 1) * 100 > widest else ""
    return {
        "low": f"{low:.1f}",
        "high": f"{max(low + 0.8, high):.1f}",
        "middle": f"{position(ratio):.1f}",
        "beyond": beyond,
    }
