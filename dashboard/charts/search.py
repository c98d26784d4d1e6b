"""Charts of a search for the best settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.conclusions.observations.scatter import LEVEL
from analysis.conclusions.wording import percent_level
from dashboard.charts.parts import Figure, axis_title, error_bars, level_line, short

_FAILED_BELOW = 0.97
"""Height of failed trials, as a share of the lowest gain."""

_MOST_TICKS = 12


def best_so_far(
    gains: Sequence[tuple[str, float | None]], confirmed: Sequence[tuple[str, float, float, float]]
) -> Figure:
    """Draw gains of the search in order, the best so far, and confirmed gains.

    Parameters
    ----------
    gains
        Settings in words and gain of each trial of the search; None if it failed.
    confirmed
        Settings in words, gain, and ends of the interval of each candidate.
    """
    numbers = range(1, len(gains) + 1)
    ok = [(number, words, short(gain, 4)) for number, (words, gain) in zip(numbers, gains, strict=True) if gain]
    failed = [number for number, (_, gain) in zip(numbers, gains, strict=True) if not gain]
    best: list[float] = []
    for _, _, gain in ok:
        best.append(max([gain, *best[-1:]]))
    lowest = min([*(gain for _, _, gain in ok), *(low for _, _, low, _ in confirmed)] or [1.0])
    highest = max([1.0, *best, *(high for *_, high in confirmed)])
    steps = [len(gains) + 2 + 2 * index for index in range(len(confirmed))]
    data: list[Figure] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "Search trial",
            "x": [number for number, _, _ in ok],
            "y": [gain for _, _, gain in ok],
            "text": [words for _, words, _ in ok],
            "hovertemplate": "%{text}: %{y}×<extra></extra>",
            "marker": {"size": 7, "color": "--s1/0.45"},
        },
        {
            "type": "scatter",
            "mode": "lines",
            "name": "Best so far",
            "x": [number for number, _, _ in ok],
            "y": best,
            "line": {"color": "--s1", "width": 2, "shape": "hv"},
        },
        {
            "type": "scatter",
            "mode": "markers",
            "name": "Failed",
            "x": failed,
            "y": [short(_FAILED_BELOW * lowest, 4)] * len(failed),
            "marker": {"size": 8, "symbol": "x", "color": "--bad"},
        },
        {
            "type": "scatter",
            "mode": "markers",
            "name": "New trials",
            "x": steps,
            "y": [short(gain, 4) for _, gain, _, _ in confirmed],
            "text": [words for words, *_ in confirmed],
            "hovertemplate": "%{text}: %{y}×<extra></extra>",
            "marker": {"size": 9, "symbol": "square", "color": "--s3"},
            "error_y": error_bars(
                [short(high - gain, 4) for _, gain, _, high in confirmed],
                [short(gain - low, 4) for _, gain, low, _ in confirmed],
                "--s3",
                f"Bars are {percent_level(LEVEL)} confidence intervals.",
            ),
            "customdata": [[short(low, 4), short(high, 4), None] for _, _, low, high in confirmed],
        },
    ]
    shapes = [level_line("y", 1, color="--ink-3", width=1, dash="dash")]
    if confirmed:
        first, last = len(gains) + 0.5, steps[-1] + 1
        box = {"type": "rect", "x0": first, "x1": last, "y0": 0, "y1": 1, "yref": "paper", "line": {"width": 0}}
        shapes.append({**box, "fillcolor": "--s3/0.09", "layer": "below"})
    layout: Figure = {
        "xaxis": {
            "title": axis_title("Trial of the search; then candidates measured again", ""),
            # Plotly would number halves between few trials.
            **({"tickvals": list(numbers)} if len(numbers) <= _MOST_TICKS else {}),
        },
        "yaxis": {
            "title": axis_title("Gain over the starting settings", "×"),
            "range": [0.95 * lowest, 1.05 * highest],
        },
        "shapes": shapes,
        "hovermode": "closest",
    }
    return {"data": [trace for trace in data if trace["x"]], "layout": layout}


def importance_chart(shares: Mapping[str, float]) -> Figure:
    """Draw the share of each parameter in the differences, largest at the top."""
    rows = sorted(shares.items(), key=lambda row: row[1])
    bars: Figure = {
        "type": "bar",
        "orientation": "h",
        "name": "Share",
        "y": [name for name, _ in rows],
        "x": [short(100 * share, 3) for _, share in rows],
        "marker": {"color": "--s1"},
        "width": 0.5,
    }
    layout: Figure = {
        "xaxis": {"title": axis_title("Share of the differences", "%"), "rangemode": "tozero"},
        "yaxis": {"type": "category", "showgrid": False, "ticks": "", "automargin": True},
        "showlegend": False,
    }
    return {"data": [bars], "layout": layout}
