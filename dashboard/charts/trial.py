"""Figures of one trial: throughput over time and packet sizes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import ceil
from typing import Final

from analysis import numbers
from dashboard.charts.parts import Figure, Scale, axis_title, band, hover, level_line, moments

# Smaller frames carry little besides headers.
SMALL_BYTES = 100
MOST_STEPS = 500
# Lowest frame length of each class: bare ACKs, small frames, then steps of 200 up to full size and jumbo frames.
_CLASSES = (0, 60, 67, 100, 200, 400, 600, 800, 1000, 1200, 1400, 1500, 1519, 3000, 6000, 9019, 16_000, 32_000, 65_536)
_DASHES: Final = {"dash": "\u2013 \u2013", "dot": "\u00b7\u00b7\u00b7"}


def throughput_over_time(
    wire_bytes: Sequence[int],
    bin_s: float,
    *,
    mean_bytes_per_s: float | None = None,
    port_bytes_per_s: float | None = None,
    zero_s: float | None = None,
) -> Figure:
    """Draw bytes per second since the first packet, in bins of `bin_s`.

    Long series are means over groups of bins, with a band from the smallest to the largest bin. ``zero_s``: time of the first packet.
    ``port_bytes_per_s``: rate of one port in one direction, drawn if the throughput comes near it.
    """
    group = max(1, ceil(len(wire_bytes) / MOST_STEPS))
    chunks = [wire_bytes[i : i + group] for i in range(0, len(wire_bytes), group)]
    rates = [sum(chunk) / (len(chunk) * bin_s) for chunk in chunks]
    low, high = [min(chunk) / bin_s for chunk in chunks], [max(chunk) / bin_s for chunk in chunks]
    scale = Scale.of([*high, *([mean_bytes_per_s] if mean_bytes_per_s else [])], "B/s")
    x = [i * group * bin_s for i in range(len(chunks))]
    data = band(x, list(map(scale, low)), list(map(scale, high)), "--s1", shape="hv") if group > 1 else []
    data.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": "Throughput",
            "showlegend": False,
            "x": x,
            "y": list(map(scale, rates)),
            "line": {"color": "--s1", "width": 1.5, "shape": "hv"},
            "hovertemplate": f"{hover('y', scale.unit)}<extra></extra>",
        }
    )
    layout: Figure = {
        "margin": {"l": 52, "r": 14, "t": 22, "b": 40},
        "xaxis": {"title": axis_title("Time since the first packet", "s"), "range": [0, len(wire_bytes) * bin_s]},
        "yaxis": {"title": axis_title("Throughput", scale.unit), "rangemode": "tozero", "fixedrange": True},
        **moments(zero_s),
    }
    lines = [(mean_bytes_per_s, "mean", "--ink-3", "dash")] if mean_bytes_per_s else []
    if port_bytes_per_s and max(high, default=0.0) > port_bytes_per_s / 2:
        lines.append((port_bytes_per_s, "rate of one port, one direction", "--s2", "dot"))
    # Above the plot: at their lines they would cover the curve.
    label = {
        "x": 1,
        "y": 1,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "right",
        "yanchor": "bottom",
        "showarrow": False,
    }
    if lines:
        layout["shapes"] = [level_line("y", scale(at), color=hue, width=1, dash=dash) for at, _, hue, dash in lines]
        layout["annotations"] = [{**label, "text": "   ".join(f"{_DASHES[dash]} {text}" for _, text, _, dash in lines)}]
    return {"data": data if wire_bytes else [], "layout": layout}


def packet_sizes(bins: Sequence[tuple[int, int, int]]) -> Figure:
    """Draw the share of packets per size class, small ones orange."""
    total = sum(packets for _, _, packets in bins)
    bins = _occupied(bins) if total else []
    shares = [100 * packets / total for _, _, packets in bins]
    bars: Figure = {
        "type": "bar",
        "orientation": "h",
        "name": "Share of packets (%)",
        "showlegend": False,
        "y": [f"{low}\u2013{high}" for low, high, _ in bins],
        "x": shares,
        "marker": {"color": ["--s2" if high < SMALL_BYTES else "--s1" for _, high, _ in bins]},
        "text": [numbers.amount(packets / total, numbers.SHARE) for _, _, packets in bins],
        "textposition": "outside",
        "textfont": {"color": "--ink-2", "size": 12},
        "cliponaxis": False,
        "hovertemplate": "%{y} B: %{text} of packets<extra></extra>",
    }
    return {
        "data": [bars] if total else [],
        "layout": {
            "hovermode": "closest",
            "bargap": 0.22,
            "margin": {"l": 70, "r": 46, "t": 6, "b": 40},
            "xaxis": {"title": axis_title("Share of packets", "%"), "range": [0, max(shares, default=100) * 1.15]},
            "yaxis": {
                "title": axis_title("Frame size", "B"),
                "autorange": "reversed",
                "showgrid": False,
                "type": "category",
            },
        },
    }


def size_classes(sizes: Sequence[int], packets: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (lowest byte, highest byte, packets) per class from exact lengths."""
    counts = [0] * len(_CLASSES)
    for size, count in zip(sizes, packets, strict=True):
        counts[bisect_right(_CLASSES, size) - 1] += count
    ends = [low - 1 for low in _CLASSES[1:]] + [max([_CLASSES[-1], *sizes])]
    return list(zip(_CLASSES, ends, counts, strict=True))


def _occupied(bins: Sequence[tuple[int, int, int]]) -> Sequence[tuple[int, int, int]]:
    filled = [i for i, (_, _, packets) in enumerate(bins) if packets]
    return bins[filled[0] : filled[-1] + 1]
