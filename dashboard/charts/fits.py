"""Models over measured values, dashed with 95 % bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.charts.parts import Figure, Scale, band, skipped_line

# Measured series use the first colours of the theme; fits use the remaining colours of a chart with one series.
_COLOURS = ("--s3", "--s4", "--s5")
_DASHES = ("dash", "dashdot", "longdash")


@dataclass(frozen=True, slots=True)
class Fitted:
    """Value and 95 % band of a model (base unit); extrapolated beyond `measured`."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float | None]
    high: Sequence[float | None]
    measured: tuple[float, float]

    def inside(self) -> list[int]:
        return [i for i, x in enumerate(self.x) if self.measured[0] <= x <= self.measured[1]]

    def beyond(self) -> list[int]:
        """Return the positions of the extrapolated part, from the last measured size on."""
        return [i for i, x in enumerate(self.x) if x >= self.measured[1]]


def fit_traces(fits: Sequence[Fitted], scale: Scale, *, bands: bool = True) -> list[Figure]:
    """Return dashed lines with 95 % bands, dotted outside the measured sizes."""
    data: list[Figure] = []
    for fit, colour, dash in zip(fits, _COLOURS, _DASHES, strict=False):
        banded = [i for i, (low, high) in enumerate(zip(fit.low, fit.high, strict=True)) if None not in (low, high)]
        if bands and banded:
            data += _band(fit, banded, scale, colour)
        inside = fit.inside()
        data.append(_curve(fit, inside, scale, {"color": colour, "width": 2, "dash": dash}, fit.name))
        beyond = fit.beyond()
        if len(beyond) > 1:
            look = {"color": colour, "width": 1.5, "dash": "dot"}
            data.append(_curve(fit, beyond, scale, look, f"{fit.name}, extrapolated"))
    return data


def _curve(fit: Fitted, at: Sequence[int], scale: Scale, line: Figure, name: str) -> Figure:
    x, y = [fit.x[i] for i in at], [scale(fit.y[i]) for i in at]
    return {**skipped_line(name, x, y, **line), "meta": "fit"}


def _band(fit: Fitted, at: Sequence[int], scale: Scale, colour: str) -> list[Figure]:
    low, high = ([scale(ends[i] or 0.0) for i in at] for ends in (fit.low, fit.high))
    return [{**edge, "meta": "fit"} for edge in band([fit.x[i] for i in at], low, high, colour)]
