"""The table of a comparison: metrics that say something, the others folded away, and what only some members measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analysis import numbers
from analysis.statistics import SampleSummary
from dashboard.charts.parts import Scale
from experiments.metrics import HEADLINE
from experiments.selectors.comparison import Compared, MetricRow, verdict_words

_TONES = {"better": "ok", "worse": "bad"}
_SIGNS = {"better": "check", "worse": "x"}


@dataclass(frozen=True, slots=True)
class Folded:
    """Rows behind one line that says how many they are and why; ``places`` are the members with values, all if empty."""

    element: str
    title: str
    rows: Sequence[dict[str, Any]]
    places: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """The rows on view, those that can be compared but say little, and those that not all members have."""

    rows: Sequence[dict[str, Any]]
    folded: Sequence[Folded]
    one_sided: Sequence[Folded]


def table(compared: Compared) -> Table:
    """Sort every metric into what stands on the page and what is folded; none is left out."""
    widest = _widest(compared)
    on_both_sides = [row for row in compared.rows if row.compared]
    key = {*HEADLINE, *compared.series}
    changed = [row for row in on_both_sides if row.metric in key or _changed(row)]
    if not changed:
        changed = [row for row in on_both_sides if not row.same]
    rest = [row for row in on_both_sides if row not in changed]
    folded = [
        Folded(element, f"{title}: {_metrics(rows)}", [_metric_row(row, compared, widest) for row in rows])
        for element, title, rows in (
            ("unclear", "No clear change, or too few repetitions", [row for row in rest if not row.same]),
            ("same", "The same number in every counted trial", [row for row in rest if row.same]),
        )
        if rows
    ]
    return Table([_metric_row(row, compared, widest) for row in changed], folded, _one_sided(compared, widest))


def _changed(row: MetricRow) -> bool:
    return any(c.verdict in ("higher", "lower") for c in row.against if c)


def _one_sided(compared: Compared, widest: float) -> list[Folded]:
    groups: dict[tuple[int, ...], list[MetricRow]] = {}
    for row in compared.rows:
        if not row.compared:
            groups.setdefault(row.measured_by, []).append(row)
    return [
        Folded(
            f"only-{''.join(compared.members[place].label for place in places).lower()}",
            f"Measured on {told_by(compared, places)} only: {_metrics(rows)}",
            [_metric_row(row, compared, widest, places) for row in rows],
            places,
        )
        for places, rows in sorted(groups.items(), key=lambda group: group[0])
    ]


def told_by(compared: Compared, places: Sequence[int]) -> str:
    """One side by letter and name, several by their letters: 'A (Water)', 'A and C'."""
    members = [compared.members[place] for place in places]
    if len(members) == 1:
        return f"{members[0].label} ({members[0].name})"
    return f"{', '.join(m.label for m in members[:-1])} and {members[-1].label}"


def _metrics(rows: Sequence[MetricRow]) -> str:
    return numbers.plural(len(rows), "metric")


def _widest(compared: Compared) -> float:
    """Percent at the ends of the bars: what nine of ten changes fit in, so that one outlier does not flatten the rest."""
    changes = sorted(abs(c.ratio - 1) * 100 for row in compared.rows for c in row.against if c and c.ratio is not None)
    return max(5.0, min(200.0, changes[int(0.9 * (len(changes) - 1))] * 1.3)) if changes else 5.0


def _metric_row(row: MetricRow, compared: Compared, widest: float, places: Sequence[int] = ()) -> dict[str, Any]:
    """A line of the table: the values of `places`, all where it is empty, and each member's change against the baseline."""
    scale = Scale.of([s.median for s in row.summaries if s], row.unit)
    others = [number for number, m in enumerate(compared.members) if m is not compared.baseline]
    return {
        "row": row,
        "unit": scale.unit,
        "values": [
            {"of": compared.members[place].label, **_value(row.summaries[place], scale)}
            for place in places or range(len(row.summaries))
        ],
        "against": []
        if places
        else [
            (f"{compared.members[number].label} against {compared.baseline.label}", _against(row, number, widest))
            for number in others
        ],
    }


def _value(summary: SampleSummary | None, scale: Scale) -> dict[str, Any]:
    if summary is None:
        return {}
    ends = numbers.between(scale(summary.minimum), scale(summary.maximum), digits=4) if summary.n > 1 else ""
    return {"median": numbers.significant(scale(summary.median)), "range": ends, "outliers": len(summary.outliers)}


def _against(row: MetricRow, number: int, widest: float) -> dict[str, Any] | None:
    comparison = row.against[number]
    if comparison is None:
        return None
    words, interval = verdict_words(comparison, row.direction), comparison.ratio_interval
    ends = None if interval is None or interval.low is None or interval.high is None else (interval.low, interval.high)
    return {
        "change": numbers.change(comparison.ratio),
        "ratio": ""
        if comparison.ratio is None or comparison.ratio >= numbers.MANY_TIMES
        else numbers.times(comparison.ratio),
        "interval": "" if ends is None else f"{numbers.change(ends[0])} to {numbers.change(ends[1])}",
        "bar": None if ends is None or comparison.ratio is None else _bar(comparison.ratio, ends, widest),
        "words": words,
        "tone": _TONES.get(words, ""),
        "icon": _SIGNS.get(words, ""),
        "arrow": {"more": "▲", "less": "▼"}.get(words, ""),
        "p": "" if comparison.p_adjusted is None else f"p = {numbers.significant(comparison.p_adjusted, 3)}",
        "effect": ""
        if comparison.cliffs_delta is None
        else f"{comparison.effect} effect, δ = {numbers.signed(comparison.cliffs_delta, 2)}",
        "test": comparison.test,
    }


def _bar(ratio: float, ends: tuple[float, float], widest: float) -> dict[str, Any]:
    """Places in percent of the bar's width, zero change in the middle; an end beyond it is cut and marked."""

    def place(value: float) -> float:
        return 50 + 50 * max(-1.0, min(1.0, (value - 1) * 100 / widest))

    low, high = place(ends[0]), place(ends[1])
    beyond = "left" if (ends[0] - 1) * 100 < -widest else "right" if (ends[1] - 1) * 100 > widest else ""
    return {
        "low": f"{low:.1f}",
        "high": f"{max(low + 0.8, high):.1f}",
        "middle": f"{place(ratio):.1f}",
        "beyond": beyond,
    }
