"""The comparison of two to eight members: differences in what was set, on what it ran, and what came out."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dashboard import numbers
from dashboard.asked import asked
from dashboard.charts import Line, Scale, over_parameter
from dashboard.charts.compare import Change, change_over
from dashboard.results import Chart
from dashboard.words import parameter_label, parameters_sentence, value_words
from experiments.comparison import DRAWN, TIME, Compared, Difference, Member, MetricRow, compare, verdict_words
from experiments.errors import CannotCompare
from experiments.metrics import described
from experiments.models import Measurement

_TONES = {"better": "ok", "worse": "bad"}
_SIGNS = {"better": "check", "worse": "x"}


@require_GET
def compare_page(request: HttpRequest) -> HttpResponse:
    """`of` may stand more than once or hold several, parted by commas; its order gives the letters."""
    tokens = members_asked(request)
    scope = "mpi" if asked(request, "scope") == "mpi" else "all"
    try:
        found = compare(request.user, tokens, baseline=asked(request, "baseline"), at=asked(request, "at"), scope=scope)
    except CannotCompare as error:
        return render(request, "compare/none.html", {"place": "experiments", "why": str(error)}, status=400)
    context = {
        "place": "experiments",
        "compared": found,
        "members": [_head(found, member, scope) for member in found.members],
        "settings": [_cells(each) for each in found.settings],
        "environment": [_cells(each) for each in found.environment],
        "environment_differs": any(each.differs for each in found.environment),
        "points": _points(found, scope),
        "paired": ", ".join(parameter_label(name).lower() for name in found.names),
        "rows": metric_rows(found),
        "charts": charts(found),
        "scope": scope,
        "scopes": [(s.value, s.label, _query(found, scope=s.value)) for s in Measurement.Scope],
        "query": _query(found, scope=scope),
    }
    return render(request, "compare/page.html", context)


def members_asked(request: HttpRequest) -> list[str]:
    """The tokens of `of`, without NUL and in order."""
    return [t for text in request.GET.getlist("of") for t in text.replace("\x00", "").split(",") if t.strip()]


def _query(found: Compared, *, baseline: str = "", at: int | None = None, scope: str = "all") -> str:
    asked_for = {"of": ",".join(m.token for m in found.members), "baseline": baseline or found.baseline.token}
    position = found.points.index(found.at) if at is None else at
    if position:
        asked_for["at"] = str(position)
    if scope != "all":
        asked_for["scope"] = scope
    return urlencode(asked_for, safe=":,")


def _head(found: Compared, member: Member, scope: str) -> dict[str, Any]:
    own = member.trials_at(found.names, found.at)
    return {
        "member": member,
        "words": point_words(member, found),
        "is_baseline": member is found.baseline,
        "trials": len(own),
        "flagged": member.flagged_at(found.names, found.at),
        "as_baseline": _query(found, baseline=member.token, scope=scope),
        "number": found.members.index(member),
    }


def point_words(member: Member, found: Compared) -> str:
    """What a member is at the chosen point: its hosts and ranks, and the paired parameters."""
    row = member.at(found.names, found.at)
    if row is None:
        return ""
    rest = [name for name in found.names if name != "hosts"]
    size = f"{row.hosts} host{'s' * (row.hosts != 1)}, {row.ranks} rank{'s' * (row.ranks != 1)}"
    return ", ".join(p for p in (size, parameters_sentence(row.parameters, rest)) if p)


def _cells(each: Difference) -> dict[str, Any]:
    """A line of a table of differences; what differs from the first is marked."""
    words = [value_words(each.name, v) if not isinstance(v, str | list | dict) else str(v) for v in each.values]
    return {
        "name": parameter_label(each.name),
        "differs": each.differs,
        "values": [(word, word != words[0]) for word in words],
    }


def _points(found: Compared, scope: str) -> list[dict[str, Any]]:
    """The switch between common points; none where there is only one."""
    if len(found.points) < 2:
        return []
    return [
        {
            "words": _point_name(found, point),
            "query": _query(found, at=position, scope=scope),
            "on": point == found.at,
        }
        for position, point in enumerate(found.points)
    ]


def _point_name(found: Compared, point: tuple[Any, ...]) -> str:
    if found.names == ("hosts",):
        return value_words("hosts", point[0])
    return parameters_sentence(dict(zip(found.names, point, strict=True)), found.names)


def metric_rows(found: Compared) -> list[dict[str, Any]]:
    """Every metric in one prefix per line, each member's change in percent with its interval as words and as a bar."""
    widest = _widest(found)
    return [_metric_row(row, found, widest) for row in found.rows]


def _widest(found: Compared) -> float:
    """Percent at the ends of the bars: what nine of ten changes fit in, so that one outlier does not flatten the rest."""
    changes = sorted(abs(c.ratio - 1) * 100 for row in found.rows for c in row.against if c and c.ratio is not None)
    return max(5.0, min(200.0, changes[int(0.9 * (len(changes) - 1))] * 1.3)) if changes else 5.0


def _metric_row(row: MetricRow, found: Compared, widest: float) -> dict[str, Any]:
    scale = Scale.of([s.median for s in row.summaries if s], row.unit)
    return {
        "row": row,
        "unit": scale.unit,
        "values": [
            None
            if s is None
            else {
                "median": numbers.significant(scale(s.median)),
                "range": f"{numbers.significant(scale(s.minimum))} – {numbers.significant(scale(s.maximum))}"
                if s.n > 1
                else "",
                "outliers": len(s.outliers),
            }
            for s in row.summaries
        ],
        "against": [_against(row, number, widest) for number, m in enumerate(found.members) if m is not found.baseline],
    }


def _against(row: MetricRow, number: int, widest: float) -> dict[str, Any] | None:
    comparison = row.against[number]
    if comparison is None:
        return None
    words, interval = verdict_words(comparison, row.direction), comparison.ratio_interval
    ends = None if interval is None or interval.low is None or interval.high is None else (interval.low, interval.high)
    return {
        "change": percent(comparison.ratio),
        "ratio": numbers.significant(comparison.ratio, 3) if comparison.ratio is not None else numbers.NOTHING,
        "interval": "" if ends is None else f"{percent(ends[0])} to {percent(ends[1])}",
        "bar": None if ends is None or comparison.ratio is None else _bar(comparison.ratio, ends, widest),
        "words": words,
        "tone": _TONES.get(words, ""),
        "icon": _SIGNS.get(words, ""),
        "arrow": {"more": "▲", "less": "▼"}.get(words, ""),
        "p": "" if comparison.p_adjusted is None else f"p = {comparison.p_adjusted:.3g}",
        "effect": ""
        if comparison.cliffs_delta is None
        else f"{comparison.effect} effect, δ = {comparison.cliffs_delta:+.2f}".replace("-", numbers.MINUS),
        "test": comparison.test,
    }


def percent(ratio: float | None) -> str:
    """How far a ratio lies from 1, signed and in percent; a dash where there is none."""
    return numbers.NOTHING if ratio is None else numbers.percent_apart(ratio, 1.0) or numbers.NOTHING


def _bar(ratio: float, ends: tuple[float, float], widest: float) -> dict[str, Any]:
    """Places in percent of the bar's width, zero change in the middle; an end beyond it is cut and marked."""

    def place(value: float) -> float:
        return 50 + 50 * max(-1.0, min(1.0, (value - 1) * 100 / widest))

    low, high = place(ends[0]), place(ends[1])
    beyond = "left" if (ends[0] - 1) * 100 < -widest else "right" if (ends[1] - 1) * 100 > widest else ""
    return {
        "low": f"{low:.1f}",
        "width": f"{max(0.8, high - low):.1f}",
        "middle": f"{place(ratio):.1f}",
        "beyond": beyond,
    }


def charts(found: Compared) -> list[Chart]:
    """Overlaid values over the common points; with a single point the members stand side by side."""
    if len(found.points) < 2:
        x = [f"{m.label}  {m.name}"[:32] for m in found.members]
        return [_side_by_side(found, metric, x) for metric in DRAWN if _measured(found, metric)]
    parameter = ", ".join(map(parameter_label, found.names))
    drawn = [_overlaid(found, metric, parameter) for metric in DRAWN if _measured(found, metric)]
    return [*drawn[:1], _change(found, parameter), *drawn[1:]] if drawn else []


def _measured(found: Compared, metric: str) -> bool:
    return any(values for groups in found.series[metric].values() for values in groups)


def _side_by_side(found: Compared, metric: str, x: list[str]) -> Chart:
    description = described(metric)
    line = Line("Trials", x, found.series[metric][found.at])
    figure = over_parameter([line], quantity=description.label, unit=description.unit, parameter="Member")
    for trace in figure["data"]:
        trace["mode"] = "markers"
    return Chart(f"overlay-{metric}", description.label, figure, subtitle="every trial, median and range")


def _overlaid(found: Compared, metric: str, parameter: str) -> Chart:
    description = described(metric)
    points = _drawn_points(found)
    x = _axis(found, points)
    lines = [
        Line(f"{m.label}  {m.name}"[:32], x, [found.series[metric][point][number] for point in points])
        for number, m in enumerate(found.members)
    ]
    figure = over_parameter(lines, quantity=description.label, unit=description.unit, parameter=parameter)
    if len(found.names) > 1:  # a line would join the end of one sweep with the beginning of the next
        for trace in figure["data"]:
            trace["mode"] = "markers"
    return Chart(f"overlay-{metric}", description.label, figure, left_out=max(0, len(lines) - 6))


def _drawn_points(found: Compared) -> list[tuple[Any, ...]]:
    """The common points with the first parameter, the hosts as a rule, running fastest: sweeps over it stay together."""
    if len(found.names) < 2:
        return found.points
    first = {point: number for number, point in enumerate(found.points)}
    groups = list(dict.fromkeys(point[1:] for point in found.points))
    return sorted(found.points, key=lambda point: (groups.index(point[1:]), first[point]))


def _axis(found: Compared, points: list[tuple[Any, ...]]) -> list[Any]:
    """Numbers where one numeric parameter pairs the members, else the points in words."""
    alone = len(found.names) == 1 and all(isinstance(point[0], int | float) for point in points)
    return [point[0] if alone else _point_name(found, point) for point in points]


def _change(found: Compared, parameter: str) -> Chart:
    changed, drawn = found.change_over_points(), _drawn_points(found)
    changes = []
    for number, member in enumerate(found.members):
        points = []
        for x, point in zip(_axis(found, drawn), drawn, strict=True):
            c = changed[point][number]
            if c is not None and c.ratio is not None:
                ends = (c.ratio_interval.low, c.ratio_interval.high) if c.ratio_interval else (None, None)
                low, high = (None if end is None else (end - 1) * 100 for end in ends)
                points.append((x, (c.ratio - 1) * 100, low, high))
        if member is not found.baseline:
            changes.append(Change(f"{member.label}  {member.name}"[:32], number, points))
    quantity = described(TIME).label.lower()
    figure = change_over(changes, quantity=quantity, parameter=parameter)
    title = f"Change in {quantity} against {found.baseline.label}"
    return Chart("change", title, figure, subtitle="95 % interval", logarithm=False)
