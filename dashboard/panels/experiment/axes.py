"""The swept parameter on the x axis of a chart, and the rows of a series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from analysis import numbers
from dashboard.charts.parts import Published, Scale
from dashboard.labels import axis_label, own_unit, parameter_label, parameters_sentence
from experiments.selectors import ConfigurationRow
from experiments.selectors.designs import is_ladder

_AXIS_UNITS = {"link.bandwidth": "bit/s", "link.delay": "s", "link.jitter": "s", "link.mtu": "B"}


STEP: Final = "step"
"""Axis of configurations that are single steps without a distinguishing parameter."""


def x_parameter(rows: Sequence[ConfigurationRow], swept: Sequence[str], *, in_steps: bool = False) -> str:
    """Return the parameter on the x axis, or STEP if the rows were made `in_steps`.

    Hosts, else the numeric parameter with the most values, else the first that varies.
    """
    if "hosts" in swept or not swept:
        return "hosts"

    def distinct(name: str) -> int:
        values = {row.parameters.get(name) for row in rows} - {None}
        return len(values) if all(isinstance(value, int | float) for value in values) else 0

    best = max(swept, key=distinct)
    return STEP if in_steps and distinct(best) < len(rows) and is_ladder(rows) else best


def groups_without(
    rows: Sequence[ConfigurationRow], swept: Sequence[str], x: str, workload: str = ""
) -> dict[str, list[ConfigurationRow]]:
    """Group rows by the values of the parameters that are not on the x axis."""
    if x == STEP or len({repr(row.parameters.get(x)) for row in rows}) == len(rows):
        return {"": list(rows)}
    others = [name for name in swept if name != x]
    sentences: dict[str, str] = {}  # few: ten thousand of them took a third of the page
    groups: dict[str, list[ConfigurationRow]] = {}
    for row in rows:
        values = repr([row.parameters.get(name) for name in others])
        if values not in sentences:
            sentences[values] = parameters_sentence(row.parameters, others, workload)
        groups.setdefault(sentences[values], []).append(row)
    return groups


@dataclass(frozen=True)
class XAxis:
    """A parameter as x: values in one SI prefix, and the title with the unit."""

    parameter: str
    title: str
    scale: Scale | None
    steps: Mapping[int, int] = field(default_factory=dict)
    """Number of every configuration, for STEP."""

    @classmethod
    def of(cls, parameter: str, rows: Sequence[ConfigurationRow], workload: str) -> XAxis:
        if parameter == STEP:
            return cls(STEP, "Step", None, {row.pk: number for number, row in enumerate(rows, start=1)})
        unit = _AXIS_UNITS.get(parameter)
        if unit is None:
            bytes_of = " (B)" if parameter.endswith("_bytes") and not own_unit(parameter, workload) else ""
            return cls(parameter, axis_label(parameter, workload) + bytes_of, None)
        scale = Scale.of([value for row in rows if (value := row.parameters.get(parameter)) is not None], unit)
        return cls(parameter, f"{parameter_label(parameter)} ({scale.unit})", scale)

    def value(self, row: ConfigurationRow) -> Any:
        if self.steps:
            return self.steps.get(row.pk)
        raw = row.parameters.get(self.parameter, row.hosts if self.parameter == "hosts" else None)
        return raw if self.scale is None or raw is None else self.scale(raw)

    def values(self, rows: Sequence[ConfigurationRow]) -> list[Any]:
        return [numbers.NOTHING if (value := self.value(row)) is None else value for row in rows]

    def published(self, name: str, rows: Sequence[ConfigurationRow], metric: str, *, legend: bool = True) -> Published:
        """Medians of a published study, each linked to its configuration."""
        points = [
            (x, y, row.pk)
            for row in rows
            if (x := self.value(row)) is not None and (y := row.median(metric)) is not None
        ]
        return Published(name, [x for x, *_ in points], [y for _, y, _ in points], legend, [of for *_, of in points])
