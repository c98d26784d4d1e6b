"""Small marks drawn as SVG by the templates: sparklines and dot strips, as positions only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, MARGIN = 112.0, 34.0, 3.0


@dataclass(frozen=True, slots=True)
class Spark:
    """Points of a sparkline in its own `WIDTH` x `HEIGHT` box, and which of them is lowest (None with fewer than 2)."""

    points: list[tuple[float, float]]
    best: int | None

    @property
    def polyline(self) -> str:
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)

    @property
    def best_point(self) -> tuple[float, float] | None:
        return None if self.best is None else self.points[self.best]


def sparkline(values: Sequence[float]) -> Spark | None:
    """A line over equally spaced points that starts at zero; None with fewer than 2 values."""
    if len(values) < 2:
        return None
    top = max(values) or 1.0
    step = (WIDTH - 2 * MARGIN) / (len(values) - 1)
    points = [(MARGIN + i * step, HEIGHT - MARGIN - v / top * (HEIGHT - 2 * MARGIN)) for i, v in enumerate(values)]
    return Spark(points, min(range(len(values)), key=values.__getitem__))


@dataclass(frozen=True, slots=True)
class Dots:
    """Positions in percent of a strip's width."""

    this: float
    others: list[float]
    published: float | None


def dot_strip(this: float, others: Sequence[float], published: float | None = None) -> Dots | None:
    """This trial's value among the other repetitions and the published one; None when it stands alone."""
    everything = [this, *others, *([] if published is None else [published])]
    if len(everything) < 2:
        return None
    low, high = min(everything), max(everything)

    def place(value: float) -> float:
        return 50.0 if high == low else round(2 + 96 * (value - low) / (high - low), 1)

    return Dots(place(this), [place(v) for v in others], None if published is None else place(published))
