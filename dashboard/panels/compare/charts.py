"""Charts of a comparison: values at common points, and changes."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any, Final

from analysis.conclusions.wording import lower_first
from analysis.numbers import MANY_TIMES
from dashboard.charts.compare import MemberChange, Ratio, change_over
from dashboard.charts.panel import Chart
from dashboard.charts.parts import MOST_SERIES, Line, axis_title, shortened
from dashboard.charts.sweep import over_parameter
from dashboard.labels import axis_label
from dashboard.panels.compare.sentences import point_name
from dashboard.panels.compare.work import different_work
from experiments.metrics import described
from experiments.selectors.compared_members import Member, Point
from experiments.selectors.comparison import Compared

MOST: Final = 5
"""Drawn metrics; with the change against the baseline they fill two rows."""

MOST_OF_ONE_POINT: Final = 3
_LONGEST_NAME: Final = 28


def charts(compared: Compared) -> list[Chart]:
    """Overlay values over the common points; for a single point, over the members.

    Different work has no chart of the change, only the values of each side.
    """
    if len(compared.points) < 2:
        return [_side_by_side(compared, metric) for metric in compared.drawn[:MOST_OF_ONE_POINT]]
    drawn = compared.drawn[:MOST]
    labels = [axis_label(name, compared.baseline.experiment.workload) for name in compared.names]
    parameter = ", ".join([*labels[:1], *map(lower_first, labels[1:])])
    overlaid = [_overlaid(compared, metric, parameter) for metric in drawn]
    change = [_change(compared, metric, parameter) for metric in drawn[:1] if not different_work(compared)]
    return [*overlaid[:1], *change, *overlaid[1:]]


def _side_by_side(compared: Compared, metric: str) -> Chart:
    lines = [
        Line(
            _series_name(compared, m),
            [m.label],
            [v],
            [m.label],
            configurations=[_configuration(compared, m, compared.at)],
        )
        for m, v in zip(compared.members, compared.series[metric][compared.at], strict=True)
    ]
    chart = _chart(compared, metric, lines, "Member", joined=False, subtitle="median and range")
    chart.figure["layout"]["xaxis"]["title"] = axis_title("Member", "")
    return chart


def _overlaid(compared: Compared, metric: str, parameter: str) -> Chart:
    points = _drawn_points(compared)
    x = _axis(compared, points)
    lines = [
        Line(
            _series_name(compared, m),
            x,
            [compared.series[metric][point][number] for point in points],
            _keys(compared, points),
            configurations=[_configuration(compared, m, point) for point in points],
        )
        for number, m in enumerate(compared.members)
    ]
    # With several parameters a line would join the end of one sweep to the start of the next.
    return _chart(compared, metric, lines, parameter, joined=len(compared.names) < 2)


def _chart(
    compared: Compared, metric: str, lines: list[Line], parameter: str, *, joined: bool, subtitle: str = ""
) -> Chart:
    label, unit = described(metric).label, described(metric).unit
    figure = over_parameter(lines, quantity=label, unit=unit, parameter=parameter)
    if not joined:
        for trace in figure["data"]:
            trace["mode"] = "markers"
    more, log_first = max(0, len(lines) - MOST_SERIES), _decades(compared, metric)
    return Chart(
        f"overlay-{metric}", label, figure, left_out=more, subtitle=subtitle, log_first=log_first, metric=metric
    )


def _keys(compared: Compared, points: Iterable[Point]) -> list[str]:
    places = {point: number for number, point in enumerate(compared.points)}
    return [f"p{places[point]}" for point in points]


def _configuration(compared: Compared, member: Member, point: Point) -> int:
    configuration = member.at(compared.names, point)
    return configuration.pk if configuration else 0


def _series_name(compared: Compared, member: Member) -> str:
    shared = any(m.name == member.name and m.experiment != member.experiment for m in compared.members)
    return f"{member.label}  {shortened(member.experiment.slug if shared else member.name, _LONGEST_NAME)}"


def _decades(compared: Compared, metric: str) -> bool:
    values = [v for ratios in compared.series[metric].values() for points in ratios for v in points]
    medians = [median(points) for ratios in compared.series[metric].values() for points in ratios if points]
    return min(values) > 0 and max(medians) >= MANY_TIMES * min(medians)


def _drawn_points(compared: Compared) -> list[Point]:
    """Return the common points with the first parameter, usually hosts, fastest."""
    if len(compared.names) < 2:
        return compared.points
    first = {point: number for number, point in enumerate(compared.points)}
    groups = {group: number for number, group in enumerate(dict.fromkeys(point[1:] for point in compared.points))}
    return sorted(compared.points, key=lambda point: (groups[point[1:]], first[point]))


def _axis(compared: Compared, points: list[Point]) -> list[Any]:
    alone = len(compared.names) == 1 and all(isinstance(point[0], int | float) for point in points)
    return [point[0] if alone else point_name(compared, point) for point in points]


def _change(compared: Compared, metric: str, parameter: str) -> Chart:
    """Draw in percent, or as ratios if a change reaches a factor of ten."""
    drawn = _drawn_points(compared)
    series = []
    for number, member in enumerate(compared.members):
        if member is compared.baseline:
            continue
        ratios = []
        for x, key, point in zip(_axis(compared, drawn), _keys(compared, drawn), drawn, strict=True):
            c = compared.changed[point][number]
            if c is not None and c.ratio is not None:
                ends = (c.ratio_interval.low, c.ratio_interval.high) if c.ratio_interval else (None, None)
                ratios.append(Ratio(x, c.ratio, *ends, key, _configuration(compared, member, point)))
        series.append(MemberChange(_series_name(compared, member), number, ratios))
    values = [point.value for line in series for point in line.points]
    in_times = bool(values) and min(values) > 0 and max(*values, *(1 / v for v in values)) >= MANY_TIMES
    quantity, base = described(metric).label, compared.baseline.label
    figure = change_over(
        series,
        quantity=lower_first(quantity) if not in_times else quantity,
        parameter=parameter,
        baseline=base,
        in_times=in_times,
    )
    title = f"{quantity}, change against {base}"
    return Chart("change", title, figure, subtitle="95 % interval", logarithm=False)
