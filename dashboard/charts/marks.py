"""Small marks that templates draw as SVG: positions of sparklines and dot strips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, MARGIN = 112.0, 34.0, 3.0


@dataclass(frozen=True, slots=True)
class Spark:
    """Points of a sparkline in its box, and the index of the best."""

    points: list[tuple[float, float]]
    best: int | None
    of: str = "elapsed time"
    """Words for its metric."""

    @property
    def polyline(self) -> str:
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)

    @property
    def best_point(self) -> tuple[float, float] | None:
        return None if self.best is None else self.points[self.best]


def sparkline(
    values: Sequence[float], *, of: str = "elapsed time", highest: bool = False, is_marked: bool = True
) -> Spark | None:
    """Return a line over equally spaced points from zero; None below 2 values.

    The lowest value is the best, or the ``highest``; ``is_marked``: the best is marked.
    """
    if len(values) < 2:
        return None
    top = max(values) or 1.0
    step = (WIDTH - 2 * MARGIN) / (len(values) - 1)
    points = [(MARGIN + i * step, HEIGHT - MARGIN - v / top * (HEIGHT - 2 * MARGIN)) for i, v in enumerate(values)]
    pick = max if highest else min
    return Spark(points, pick(range(len(values)), key=values.__getitem__) if is_marked else None, of)


@dataclass(frozen=True, slots=True)
class Dots:
    """Positions in percent of the width of a strip."""

    this: float
    others: list[float]
    published: float | None


def repetition_dots(this: float, others: Sequence[float], published: float | None = None) -> Dots | None:
    """Return positions of a trial, its repetitions and the published value."""
    everything = [this, *others, *([] if published is None else [published])]
    if len(everything) < 2:
        return None
    low, high = min(everything), max(everything)

    def position(value: float) -> float:
        return 50.0 if high == low else round(2 + 96 * (value - low) / (high - low), 1)

    return Dots(position(this), [position(v) for v in others], None if published is None else position(published))
