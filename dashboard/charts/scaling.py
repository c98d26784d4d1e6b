"""Scaling over hosts: speed-up, efficiency, and time breakdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.conclusions.wording import whole_size
from analysis.numbers import SHARE, amount
from dashboard.charts.fits import Fitted, fit_traces
from dashboard.charts.parts import (
    MOST_SERIES,
    Figure,
    Line,
    Published,
    Scale,
    axis_title,
    hover,
    level_line,
    reference,
    skipped_line,
    spread,
    ticks,
)
from dashboard.charts.sweep import x_axis

_MOST_NAMED, _SHORT_NAME = 8, 16
"""Bars with long names, and letters of a short name, that have room next to each other."""
SPEED_UP, SCALED = "Speed-up", "Scaled speed-up"
PART_COLOURS = ("--s2", "--s1", "--s3", "--s4", "--s5", "--s6")


def part_marker(colour: str, opacity: float) -> Figure:
    """Return the look of a part of a bar; the light blue is hatched, next to the blue."""
    hatched = {"pattern": {"shape": "/", "size": 6, "solidity": 0.25}} if colour == PART_COLOURS[-1] else {}
    return {"color": f"{colour}/{opacity}", "line": {"color": colour, "width": 1}, **hatched}


@dataclass(frozen=True, slots=True)
class Best:
    """A predicted best size and its interval, if the data bound it."""

    value: float
    low: float | None
    high: float | None


def speed_up(
    lines: Sequence[Line],
    fits: Sequence[Fitted] = (),
    *,
    published: Sequence[Published] = (),
    ideal_from: float = 1.0,
    best: Best | None = None,
    quantity: str = SPEED_UP,
) -> Figure:
    """Draw speed-up over hosts with the ideal line from `ideal_from`.

    Published values are on if their sizes fit the axis; the key "published" of the figure says so.
    """
    drawn_lines = [line for line in lines if any(line.trials)][:MOST_SERIES]
    if not drawn_lines:
        return _empty(quantity, "×")
    scale = Scale(0, "×")
    measured = [value for line in drawn_lines for trials in line.trials for value in trials]
    fitted = [fit.y[i] for fit in fits for i in fit.inside()]
    overlaid = _fits(published, drawn_lines)
    xs = _sizes(drawn_lines, published if overlaid else ())
    top = 1.2 * max([*measured, *fitted, *(y for p in published if overlaid for y in p.y), 1.0])
    ends = [xs[0], max([xs[-1], *(fit.x[-1] for fit in fits)])]
    ideal = skipped_line("Ideal", ends, [x / ideal_from for x in ends], color="--ink-3", width=1)
    data = [ideal, *_references(published, scale, overlaid), *fit_traces(fits, scale)]
    for index, line in enumerate(drawn_lines):
        data += spread(line, scale, index, series=len(drawn_lines))
    layout: Figure = {
        "xaxis": x_axis(ends if len(xs) < 2 else [*xs[:-1], ends[-1]], "Hosts"),
        "yaxis": {"title": axis_title(quantity, "×"), "range": [0, top]},
    }
    layout["xaxis"] |= ticks(xs, *layout["xaxis"]["range"]) if xs else {}
    if best is not None:
        layout |= _predicted(best, ends[-1])
    return {"data": data, "layout": layout} | ({"published": overlaid} if published else {})


def _references(published: Sequence[Published], scale: Scale, overlaid: bool) -> list[Figure]:
    return [{**reference(p, scale), "visible": overlaid, "meta": "published"} for p in published]


def _fits(published: Sequence[Published], lines: Sequence[Line]) -> bool:
    last = max(_sizes(lines), default=0.0)
    return bool(published) and max(_sizes((), published), default=0.0) <= 1.5 * last


def _sizes(lines: Sequence[Line], published: Sequence[Published] = ()) -> list[float]:
    return sorted({float(x) for line in lines for x in line.x} | {float(x) for p in published for x in p.x})


def _predicted(best: Best, last: float) -> Figure:
    """Return a band of the interval of the best size; a line if unbounded."""
    shape = {**level_line("x", best.value, color="--mark", width=1.5), "layer": "below"}
    if best.low is not None and best.high is not None:
        band = {"type": "rect", "x0": best.low, "x1": min(best.high, last), "fillcolor": "--mark/0.35"}
        shape |= {**band, "line": {"width": 0}}
    note = {"x": best.value, "y": 0, "yref": "paper", "yanchor": "bottom"}
    note["xanchor"] = "right" if best.value > 0.6 * last else "left"
    note["text"] = f"&nbsp;predicted best: {whole_size(best.value)}&nbsp;"
    return {"shapes": [shape], "annotations": [note]}


def efficiency(
    lines: Sequence[Line],
    published: Sequence[Published] = (),
    *,
    over: str = "Hosts",
    guide: tuple[float, str] = (0.5, "half is lost"),
) -> Figure:
    """Draw efficiencies over hosts (or `over`) in per cent."""
    drawn_lines = [line for line in lines if any(line.trials)][:MOST_SERIES]
    if not drawn_lines:
        return _empty("Efficiency", "%")
    scale, overlaid = Scale(-2, "%"), _fits(published, drawn_lines)
    data = _references(published, scale, overlaid)
    for index, line in enumerate(drawn_lines):
        data += spread(line, scale, index, series=len(drawn_lines))
    xs = _sizes(drawn_lines, published if overlaid else ())
    top = max(100 * value for line in drawn_lines for trials in line.trials for value in trials)
    at, words = scale(guide[0]), guide[1]
    guide_label = {"xref": "paper", "x": 0, "xanchor": "left", "y": at, "yanchor": "bottom", "text": words}
    return ({"published": overlaid} if published else {}) | {
        "data": data,
        "layout": {
            "xaxis": x_axis(xs, over),
            "yaxis": {"title": axis_title("Efficiency", "%"), "range": [0, 1.08 * max(top, 100)]},
            "shapes": [level_line("y", at, color="--ink-3", width=1, dash="dash")],
            "annotations": [guide_label] if words else [],
        },
    }


def time_parts(
    sizes: Sequence[str],
    parts: Mapping[str, Sequence[float | None]],
    wholes: Sequence[float] = (),
    *,
    of: Sequence[int] = (),
    shares: str = "",
    outside: str = "",
    quantity: tuple[str, str] = ("Time", "s"),
    base: str = "",
) -> Figure:
    """Draw medians of a ``quantity`` (name, unit) per size as stacked bars.

    `wholes`: the seconds that shares are of, else the sum of the parts; `shares` is its name if bars are per cent of it. `outside`: the
    part that is not in the whole, such as the time before MPI_Init: it has no share. `of`: the configuration of every size.
    `base`: the name of what the words of bars are shares of.
    """
    colours = dict(zip(parts, PART_COLOURS, strict=False))  # a part keeps its colour if others are missing
    measured_parts = {name: values for name, values in parts.items() if any(v is not None for v in values)}
    if not measured_parts:
        return _empty(*quantity)
    crowded = len(sizes) > _MOST_NAMED and max(map(len, sizes)) > _SHORT_NAME
    heights = [sum(values[i] or 0.0 for values in measured_parts.values()) for i in range(len(sizes))]
    totals = [whole or 1.0 for whole in wholes or heights]
    scale = Scale(0, "%") if shares else Scale.of(heights, quantity[1])
    share_words = f", %{{text}} of {base}" if base else ", %{text}"
    data = []
    for name, values in measured_parts.items():
        if shares and name == outside:
            continue
        colour = "--ref" if name == outside else colours.get(name, PART_COLOURS[-1])
        drawn = [
            None if v is None else (100 * v / total if shares else scale(v))
            for v, total in zip(values, totals, strict=True)
        ]
        words = [
            "" if v is None or name == outside else amount(v / t, SHARE, 2) for v, t in zip(values, totals, strict=True)
        ]
        data.append(
            {
                "type": "bar",
                "name": name,
                "x": list(sizes),
                "y": drawn,
                "text": words,
                "texttemplate": "%{text}" if shares else hover("y", scale.unit),
                "textposition": "none" if crowded else "inside",
                "insidetextanchor": "middle",
                "textangle": 0,
                "textfont": {"color": "--ink"},
                "marker": part_marker(colour, 0.42),
                "hovertemplate": f"{hover('y', scale.unit)}{'' if name == outside else share_words}<extra>{name}</extra>",
                **({"of": list(of)} if of else {}),
            }
        )
    x_axis: Figure = {"title": axis_title("Hosts, not to scale", ""), "type": "category"}
    if crowded:  # vertical names would leave no room for the bars; hover text names each bar
        x_axis |= {"title": axis_title("Configurations, in the order of the table", ""), "showticklabels": False}
    return {
        "data": data,
        "layout": {
            "barmode": "stack",
            "uniformtext": {"mode": "hide", "minsize": 10},  # no text in bars that are too thin for it
            "xaxis": x_axis,
            "yaxis": {"title": axis_title(f"Share of {shares}" if shares else quantity[0], scale.unit)},
        },
    }


def _empty(quantity: str, unit: str) -> Figure:
    axis = {"title": axis_title("Hosts", ""), "range": [0, 1], "showticklabels": False}
    return {"data": [], "layout": {"xaxis": axis, "yaxis": {"title": axis_title(quantity, unit), "range": [0, 1]}}}
