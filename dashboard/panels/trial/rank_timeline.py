"""Activity of the ranks of a traced trial, for an interval and step count."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Final

from analysis import numbers
from analysis.mpi.timeline import Timeline, span_of, timeline
from dashboard.charts.parts import Figure, leads_to_packets
from dashboard.charts.ranks import ranks_over_time
from dashboard.panels.trial.packets import begin_of_packets
from experiments.files import read_mpi_calls
from experiments.models import Trial

STEPS: Final = 400
_FEWEST_STEPS, _MOST_STEPS = 10, 2_000
MOST_RANKS: Final = 64
MOST_CELLS: Final = 14_000
"""Most squares: the figure stays below 200 kB, and users can zoom in."""
_SHORTEST_S: Final = 1e-5


def rank_timeline(trial: Trial, *, first: str, until: str, steps: str) -> dict[str, Any]:
    """Return the panel from ``first`` to ``until`` (s from the first call).

    ``steps`` is their number. Invalid input selects the whole trial.
    """
    first_s, until_s = _seconds(first), _seconds(until)
    calls = read_mpi_calls(trial)
    if calls is None or not len(calls.rows):
        return {"why": "The call trace of this trial is missing or unreadable."}
    count = min(_steps(steps), MOST_CELLS // min(max(1, len(calls.left_out)), MOST_RANKS))
    begin_ns, end_ns = span_of(calls)
    whole_s = max((end_ns - begin_ns) / 1e9, _SHORTEST_S)
    first_s = min(max(0.0, first_s or 0.0), whole_s - _SHORTEST_S)
    until_s = min(max(until_s or whole_s, first_s + _SHORTEST_S), whole_s)
    drawn = timeline(calls, begin_ns + round(first_s * 1e9), begin_ns + round(until_s * 1e9), count, MOST_RANKS)
    left_out = sum(calls.left_out.values())
    return {
        "figure": ranks_over_time(drawn, begin_ns, _leads(trial, drawn)),
        "step": numbers.amount((until_s - first_s) / count, "s"),
        "ranks": len(drawn.ranks),
        "of_ranks": len(calls.left_out),
        "left_out": left_out,
        "moves": _moves(first_s, until_s, whole_s),
    }


def _leads(trial: Trial, drawn: Timeline) -> Figure | None:
    capture = begin_of_packets(trial)
    if capture is None:
        return None
    edges_s = ((drawn.edges_ns - round(capture * 1e9)) / 1e9).tolist()
    return leads_to_packets(trial.get_absolute_url(), list(pairwise(edges_s)))


def _moves(first_s: float, until_s: float, whole_s: float) -> list[dict[str, Any]]:
    """Return links to other intervals: (name, from, to) in seconds."""
    length_s = until_s - first_s
    closer_s, half_s = length_s / 4, length_s / 2
    is_whole = length_s >= whole_s
    moves = [
        ("Earlier", max(0.0, first_s - half_s), max(0.0, first_s - half_s) + length_s, first_s <= 0),
        ("Later", min(whole_s, until_s + half_s) - length_s, min(whole_s, until_s + half_s), until_s >= whole_s),
        ("Closer", first_s + closer_s, until_s - closer_s, half_s <= _SHORTEST_S),
        ("Wider", max(0.0, first_s - half_s), min(whole_s, until_s + half_s), is_whole),
        ("All", 0.0, whole_s, is_whole),
    ]
    return [
        {"name": name, "from": str(round(first, 9)), "to": str(round(to, 9)), "off": off}
        for name, first, to, off in moves
    ]


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _steps(text: str) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) < 9
    return min(max(int(text), _FEWEST_STEPS), _MOST_STEPS) if is_number else STEPS
