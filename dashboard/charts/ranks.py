"""Figures of the ranks of one trial: time by state, and message sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from analysis import numbers
from analysis.mpi.timeline import Timeline
from dashboard.charts.parts import Figure, Scale, axis_title, band, hover, level_line, moments, short
from dashboard.charts.scaling import PART_COLOURS, part_marker
from dashboard.charts.traffic import traffic_matrix

MOST_RANKS: Final = 64
"""Rows and columns of the matrix: the ranks with most bytes."""
_MOST_HOSTS: Final = 8
"""Of more, names would overlap."""
_FEW_RANKS: Final = 16
"""Of which each has a tick."""


def inside_over_time(rows: Sequence[Mapping[str, Any]], zero_s: float | None = None) -> Figure:
    """Draw mean and range of the share of time inside MPI over time.

    ``rows``: shares of each ``bin_s`` by rank; one bin is a power of two times another.
    ``zero_s``: time of the end of MPI_Init.
    """
    step_s = max((row["bin_s"] for row in rows), default=1.0)
    by_rank = [_in_steps(row["shares"], max(1, round(step_s / row["bin_s"]))) for row in rows]
    count = max((len(shares) for shares in by_rank), default=0)
    steps = [[shares[index] for shares in by_rank if index < len(shares)] for index in range(count)]
    x = [round(index * step_s, 9) for index in range(count)]
    percent = [[round(100 * share, 2) for share in step] for step in steps]
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": "Mean of the ranks",
        "x": x,
        "y": [round(sum(step) / len(step), 2) for step in percent],
        "line": {"color": "--s3", "width": 1.5, "shape": "hv"},
        "hovertemplate": f"{hover('y', '%')}<extra></extra>",
    }
    edges = band(x, list(map(min, percent)), list(map(max, percent)), "--s1", shape="hv") if len(by_rank) > 1 else []
    return {
        "data": [*edges, line] if count else [],
        "layout": {
            "showlegend": False,
            "margin": {"l": 52, "r": 14, "t": 10, "b": 40},
            "xaxis": {"title": axis_title("Time since MPI_Init", "s"), "range": [0, count * step_s]},
            "yaxis": {"title": axis_title("Inside MPI", "%"), "range": [0, 100]},
            **moments(zero_s),
        },
    }


def requested_matrix(pairs: Sequence[Sequence[int]], *, leads: str = "") -> Figure:
    """Draw the bytes that ranks requested MPI to send to each other.

    ``pairs``: [from, to, messages, bytes]; ``leads`` as in `traffic_matrix`.
    """
    sent: dict[int, int] = {}
    for source, target, _, size in pairs:
        for rank in (source, target):
            sent[rank] = sent.get(rank, 0) + size
    ranks = sorted(sorted(sent, key=lambda rank: -sent[rank])[:MOST_RANKS])
    index = {rank: number for number, rank in enumerate(ranks)}
    cells = [[0] * len(ranks) for _ in ranks]
    for source, target, _, size in pairs:
        if source in index and target in index:
            cells[index[source]][index[target]] = size
    return traffic_matrix(ranks, cells, of="rank", leads=leads)


def dot_per_rank(
    ranks: Sequence[int],
    hosts: Sequence[str],
    values: Sequence[float],
    *,
    quantity: str,
    unit: str,
    sharing: Collection[int] = (),
) -> Figure:
    """Draw a quantity of each rank; dotted lines divide the hosts.

    ``hosts``: of each rank; ``unit``: base unit; ``sharing``: ranks on a core of another one, drawn as squares.
    """
    scale, whole = Scale.of(values, unit), {"dtick": 1} if len(ranks) <= _FEW_RANKS else {}
    ends = [at for at in range(1, len(ranks)) if hosts[at] != hosts[at - 1]]
    runs = list(pairwise([0, *ends, len(ranks)]))
    is_named = len(runs) <= _MOST_HOSTS
    lines = [
        level_line("x", (ranks[end - 1] + ranks[end]) / 2, color="--line-2", width=1, dash="dot")
        for end in ends
        if is_named
    ]
    note = {"yref": "paper", "y": 0, "yanchor": "bottom"}
    names = [{**note, "x": (ranks[a] + ranks[b - 1]) / 2, "text": hosts[a]} for a, b in runs if is_named]
    words = f"rank %{{x}} on %{{customdata[0]}}: {hover('y', scale.unit)}"
    rows = list(zip(ranks, hosts, values, strict=True))
    traces = {"Own core" if sharing else quantity: [row for row in rows if row[0] not in sharing]}
    traces["Shared core"] = [row for row in rows if row[0] in sharing]
    marks = ({"size": 6, "color": "--s1"}, {"size": 10, "color": "--s2", "symbol": "square"})
    dots = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [rank for rank, _, _ in members],
            "y": [short(scale(value)) for _, _, value in members],
            "customdata": [[host] for _, host, _ in members],
            "marker": mark,
            "hovertemplate": f"{words}{', shared core' if mark is marks[1] else ''}<extra></extra>",
        }
        for (name, members), mark in zip(traces.items(), marks, strict=True)
        if members
    ]
    return {
        "data": dots,
        "layout": {
            "showlegend": bool(sharing),
            "hovermode": "closest",
            "xaxis": {"title": axis_title("Rank", ""), "range": [min(ranks) - 0.5, max(ranks) + 0.5], **whole},
            "yaxis": {"title": axis_title(quantity, scale.unit), "rangemode": "tozero"},
            "shapes": lines,
            "annotations": names,
        },
    }


def _in_steps(shares: Sequence[float], group: int) -> list[float]:
    chunks = [shares[first : first + group] for first in range(0, len(shares), group)]
    return [sum(chunk) / group for chunk in chunks]


_NOT_SPLIT: Final = {"no_core_s": "Outside MPI, off the CPU"}
_SPLIT: Final = {"descheduled_s": "Descheduled outside MPI", "blocked_outside_s": "Blocked outside MPI"}
"""Shown if the kernel of every host counts run delay."""
BLOCKED_IN_MPI: Final = "In MPI, blocked"
"""Off the CPU and not runnable: a descheduled rank waits for a CPU core, not for a message."""
_IN_MPI: Final = {"on_cpu_s": "In MPI, on CPU", "blocked_s": "In MPI, off the CPU"}
_SPLIT_IN_MPI: Final = {
    "on_cpu_s": "In MPI, on CPU",
    "descheduled_inside_s": "In MPI, descheduled",
    "waiting_s": BLOCKED_IN_MPI,
}
_SIZES: Final = (("point_to_point", "Point-to-point", "--s1"), ("collective", "Collective", "--s3"))


def time_per_rank(ranks: Sequence[dict[str, Any]]) -> Figure:
    """Draw seconds from MPI_Init to MPI_Finalize as stacked bars per rank."""
    parts = {"computing_s": "Computing", **_NOT_SPLIT, **_IN_MPI}
    if all(part in rank for part in (*_SPLIT, "descheduled_inside_s") for rank in ranks):
        parts = {"computing_s": "Computing", **_SPLIT, **_SPLIT_IN_MPI}
        ranks = [rank | {"waiting_s": max(0.0, rank["blocked_s"] - rank["descheduled_inside_s"])} for rank in ranks]
    scale = Scale.of([rank["window_s"] for rank in ranks], "s")
    names = [", ".join(filter(None, (str(rank["rank"]), rank["host"]))) for rank in ranks]
    data = [
        {
            "type": "bar",
            "name": label,
            "x": names,
            "y": [scale(rank[part]) for rank in ranks],
            "marker": part_marker(colour, 0.5),
            "hovertemplate": f"rank %{{x}}: {hover('y', scale.unit)}<extra>{label}</extra>",
        }
        for (part, label), colour in zip(parts.items(), PART_COLOURS, strict=False)
    ]
    return {
        "data": data,
        "layout": {
            "barmode": "stack",
            "xaxis": {"title": axis_title("Rank, host", ""), "type": "category"},
            "yaxis": {"title": axis_title("Time in the MPI window", scale.unit)},
        },
    }


def message_sizes(sizes: Mapping[str, Sequence[int]]) -> Figure:
    """Draw messages and calls of collectives by size, in classes that double."""
    used = [index for index in range(66) if any(counts[index] for counts in sizes.values())]
    if not used:
        return {"data": [], "layout": {}}
    classes = range(used[0], used[-1] + 1)
    labels = [_class(index) for index in classes]
    return {
        "data": [
            {
                "type": "bar",
                "name": label,
                "x": labels,
                "y": [sizes[name][index] or None for index in classes],
                "marker": {"color": f"{colour}/0.5", "line": {"color": colour, "width": 1}},
                "hovertemplate": f"%{{x}}: %{{y}}<extra>{label}</extra>",
            }
            for name, label, colour in _SIZES
            if any(sizes[name])
        ],
        "layout": {
            "barmode": "stack",
            "xaxis": {"title": axis_title("Size, from; not to scale", ""), "type": "category"},
            "yaxis": {"title": axis_title("Messages, calls", "")},
        },
    }


def _class(index: int) -> str:
    return "0 B" if index == 0 else numbers.size(1 << (index - 1))


_STATES: Final = (("Computing", "--s2"), ("In MPI", "--s3"), ("Waiting", "--s4"))
"""Possible states of a step; the number of a step in the heat map is an index here."""


def ranks_over_time(steps: Timeline, zero_ns: int, leads: Figure | None = None) -> Figure:
    """Draw ranks as rows and steps as columns, coloured by the largest part.

    ``zero_ns``: start of the time axis. ``leads``: target of a step (`leads_to_packets`).
    """
    parts = np.stack([1 - steps.inside, steps.inside - steps.waiting, steps.waiting], axis=-1)
    unknown = np.isnan(steps.inside)
    largest = np.where(unknown, -1, np.argmax(np.where(unknown[..., None], 0, parts), axis=-1))
    percent = np.rint(100 * np.nan_to_num(parts)).astype(int)
    edges_s = (steps.edges_ns - zero_ns) / 1e9
    middles_s = (edges_s[1:] + edges_s[:-1]) / 2
    scale = Scale.of([float(middles_s[-1])], "s")
    count = len(_STATES)
    shares = ", ".join(f"%{{customdata[{index}]}} % {name}" for index, (name, _) in enumerate(_STATES))
    heat = {
        "type": "heatmap",
        "name": "Rank",
        "x": [numbers.rounded(scale(middle), 7) for middle in middles_s.tolist()],
        "y": [str(rank) for rank in steps.ranks],
        "z": [[None if value < 0 else value for value in row] for row in largest.tolist()],
        "customdata": percent.tolist(),
        "meta": [f"{name} (%)" for name, _ in _STATES],
        "colorscale": [
            [edge / count, colour] for index, (_, colour) in enumerate(_STATES) for edge in (index, index + 1)
        ],
        "zmin": -0.5,
        "zmax": count - 0.5,
        "showscale": False,
        "hovertemplate": f"rank %{{y}}, {hover('x', scale.unit)}: {shares}<extra></extra>",
        **(leads or {}),
    }
    names = [
        {"type": "scatter", "name": name, "x": [None], "y": [None], "mode": "markers", "hoverinfo": "skip",
         "marker": {"color": colour, "symbol": "square", "size": 10}}
        for name, colour in _STATES
    ]  # fmt: skip
    return {
        "data": [heat, *names],
        "layout": {
            "hovermode": "closest",
            "xaxis": {"title": axis_title("Time since the first call", scale.unit)},
            "yaxis": {"title": axis_title("Rank", ""), "type": "category", "autorange": "reversed"},
            **moments(zero_ns / 1e9, 1 / scale(1.0)),
        },
    }
