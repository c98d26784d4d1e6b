"""Which swept parameter a chart has on its x axis, and which rows make one series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard import numbers
from dashboard.charts import Scale
from dashboard.words import parameter_label, parameters_sentence
from experiments.selectors import ConfigurationRow

_AXIS_UNITS = {"link.bandwidth": "bit/s", "link.delay": "s", "link.jitter": "s", "link.mtu": "B"}


def x_parameter(rows: Sequence[ConfigurationRow], swept: Sequence[str]) -> str:
    """The parameter on the x axis: hosts, else the numeric one with the most values, else the first that varies."""
    if "hosts" in swept or not swept:
        return "hosts"

    def distinct(name: str) -> int:
        values = {row.parameters.get(name) for row in rows} - {None}
        return len(values) if all(isinstance(value, int | float) for value in values) else 0

    return max(swept, key=distinct)


def groups_beside(rows: Sequence[ConfigurationRow], swept: Sequence[str], x: str) -> dict[str, list[ConfigurationRow]]:
    """Rows by the values of the parameters that are not on the x axis: one series each, one in all where x tells them apart."""
    if len({repr(row.parameters.get(x)) for row in rows}) == len(rows):
        return {"": list(rows)}
    groups: dict[str, list[ConfigurationRow]] = {}
    for row in rows:
        groups.setdefault(parameters_sentence(row.parameters, [name for name in swept if name != x]), []).append(row)
    return groups


@dataclass(frozen=True)
class XAxis:
    """A parameter as x: its values in one SI prefix, its title with the unit."""

    parameter: str
    title: str
    scale: Scale | None

    @classmethod
    def of(cls, parameter: str, rows: Sequence[ConfigurationRow]) -> XAxis:
        unit = _AXIS_UNITS.get(parameter)
        if unit is None:
            bytes_of = " (B)" if parameter.endswith("_bytes") else ""
            return cls(parameter, parameter_label(parameter) + bytes_of, None)
        scale = Scale.of([value for row in rows if (value := row.parameters.get(parameter)) is not None], unit)
        return cls(parameter, f"{parameter_label(parameter)} ({scale.unit})", scale)

    def value(self, row: ConfigurationRow) -> Any:
        raw = row.parameters.get(self.parameter, row.hosts if self.parameter == "hosts" else None)
        return raw if self.scale is None or raw is None else self.scale(raw)

    def values(self, rows: Sequence[ConfigurationRow]) -> list[Any]:
        return [numbers.NOTHING if (value := self.value(row)) is None else value for row in rows]

    def medians(self, rows: Sequence[ConfigurationRow], metric: str) -> tuple[list[Any], list[float]]:
        pairs = [(x, y) for row in rows if (x := self.value(row)) is not None and (y := row.median(metric)) is not None]
        return [x for x, _ in pairs], [y for _, y in pairs]
