"""Figures of what the ranks of one trial asked MPI for: how much of the run they were inside it, and who sent whom how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dashboard.charts.parts import Figure, axis_title, band, hover
from dashboard.charts.wire import traffic_matrix

MOST_RANKS: Final = 64
"""Rows and columns of the matrix, the ranks with most bytes."""


def inside_over_time(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """The mean share of time inside MPI, and the range of the ranks, in steps of the coarsest rank.

    ``rows``: for every rank its shares of each ``bin_s``, of which one is a power of two times another.
    """
    step_s = max((row["bin_s"] for row in rows), default=1.0)
    by_rank = [_in_steps(row["shares"], max(1, round(step_s / row["bin_s"]))) for row in rows]
    count = max((len(shares) for shares in by_rank), default=0)
    steps = [[shares[place] for shares in by_rank if place < len(shares)] for place in range(count)]
    x = [round(place * step_s, 9) for place in range(count)]
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
        },
    }


def asked_matrix(pairs: Sequence[Sequence[int]], *, leads: str = "") -> Figure:
    """Bytes from rank to rank as the program asked. ``pairs``: [from, to, messages, bytes]; ``leads`` as that of a `traffic_matrix`."""
    sent: dict[int, int] = {}
    for source, target, _, size in pairs:
        for rank in (source, target):
            sent[rank] = sent.get(rank, 0) + size
    ranks = sorted(sorted(sent, key=lambda rank: -sent[rank])[:MOST_RANKS])
    place = {rank: number for number, rank in enumerate(ranks)}
    cells = [[0] * len(ranks) for _ in ranks]
    for source, target, _, size in pairs:
        if source in place and target in place:
            cells[place[source]][place[target]] = size
    return traffic_matrix(ranks, cells, of="rank", leads=leads)


def _in_steps(shares: Sequence[float], group: int) -> list[float]:
    chunks = [shares[first : first + group] for first in range(0, len(shares), group)]
    return [sum(chunk) / group for chunk in chunks]
