"""Figures of the ranks of one trial: where the time of each went, and how large its messages were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from analysis import numbers
from analysis.mpi.timeline import Timeline
from dashboard.charts.parts import Figure, Scale, axis_title, hover
from dashboard.charts.scaling import PART_COLOURS

_NOT_SPLIT: Final = {"no_core_s": "Outside MPI, on no processor"}
_SPLIT: Final = {"descheduled_s": "Descheduled outside MPI", "blocked_outside_s": "Blocked outside MPI"}
"""If the kernel of every host counts run delay."""
_IN_MPI: Final = {"on_cpu_s": "In MPI, on CPU", "blocked_s": "In MPI, blocked"}
_SIZES: Final = (("point_to_point", "Point-to-point", "--s1"), ("collective", "Collective", "--s3"))


def time_per_rank(ranks: Sequence[Mapping[str, Any]]) -> Figure:
    """Stacked bars, one per rank, of seconds between MPI_Init and MPI_Finalize: the parts add up to the window."""
    is_split = all(part in rank for part in _SPLIT for rank in ranks)
    parts = {"computing_s": "Computing", **(_SPLIT if is_split else _NOT_SPLIT), **_IN_MPI}
    scale = Scale.of([rank["window_s"] for rank in ranks], "s")
    names = [str(rank["rank"]) for rank in ranks]
    data = [
        {
            "type": "bar",
            "name": label,
            "x": names,
            "y": [scale(rank[part]) for rank in ranks],
            "customdata": [rank["host"] for rank in ranks],
            "marker": {"color": f"{colour}/0.5", "line": {"color": colour, "width": 1}},
            "hovertemplate": f"%{{customdata}}: {hover('y', scale.unit)}<extra>{label}</extra>",
        }
        for (part, label), colour in zip(parts.items(), PART_COLOURS, strict=False)
    ]
    return {
        "data": data,
        "layout": {
            "barmode": "stack",
            "xaxis": {"title": axis_title("Rank", ""), "type": "category"},
            "yaxis": {"title": axis_title("Time in MPI's window", scale.unit)},
        },
    }


def message_sizes(sizes: Mapping[str, Sequence[int]]) -> Figure:
    """Messages and calls of collectives by size, in classes that double."""
    used = [place for place in range(66) if any(counts[place] for counts in sizes.values())]
    if not used:
        return {"data": [], "layout": {}}
    shown = range(used[0], used[-1] + 1)
    labels = [_class(place) for place in shown]
    return {
        "data": [
            {
                "type": "bar",
                "name": label,
                "x": labels,
                "y": [sizes[name][place] for place in shown],
                "marker": {"color": f"{colour}/0.5", "line": {"color": colour, "width": 1}},
                "hovertemplate": f"%{{x}}: %{{y}}<extra>{label}</extra>",
            }
            for name, label, colour in _SIZES
        ],
        "layout": {
            "barmode": "group",
            "xaxis": {"title": axis_title("Size, from; not to scale", ""), "type": "category"},
            "yaxis": {"title": axis_title("Messages, calls", "")},
        },
    }


def _class(place: int) -> str:
    return "0 B" if place == 0 else numbers.size(1 << (place - 1))


_STATES: Final = (("Computing", "--s2"), ("In MPI", "--s3"), ("Waiting", "--s4"))
"""What a step can be mostly; a step's number in the heat map is the place here."""


def ranks_over_time(found: Timeline, zero_ns: int, leads: Figure | None = None) -> Figure:
    """Ranks as rows, steps as columns, coloured by the largest of computing, MPI and long waits. ``zero_ns``: where time begins.

    ``leads``: what a step leads to (`leads_to_packets`).
    """
    parts = np.stack([1 - found.inside, found.inside - found.waiting, found.waiting], axis=-1)
    unknown = np.isnan(found.inside)
    largest = np.where(unknown, -1, np.argmax(np.where(unknown[..., None], 0, parts), axis=-1))
    percent = np.rint(100 * np.nan_to_num(parts)).astype(int)
    edges_s = (found.edges_ns - zero_ns) / 1e9
    middles_s = (edges_s[1:] + edges_s[:-1]) / 2
    scale = Scale.of([float(middles_s[-1])], "s")
    count = len(_STATES)
    shares = ", ".join(f"%{{customdata[{place}]}} % {name}" for place, (name, _) in enumerate(_STATES))
    heat = {
        "type": "heatmap",
        "name": "Rank",
        "x": [numbers.rounded(scale(each), 7) for each in middles_s.tolist()],
        "y": [str(rank) for rank in found.ranks],
        "z": [[None if each < 0 else each for each in row] for row in largest.tolist()],
        "customdata": percent.tolist(),
        "meta": [f"{name} (%)" for name, _ in _STATES],
        "colorscale": [
            [edge / count, colour] for place, (_, colour) in enumerate(_STATES) for edge in (place, place + 1)
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
        },
    }
