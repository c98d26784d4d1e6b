"""Work of the sides of a comparison: workload, and parameters that set its amount."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isclose
from typing import Any, Final

from pydantic import ValidationError

from dashboard.labels import parameter_label, value_words, workload_title
from experiments import workloads
from experiments.selectors.comparison import TIME, Compared
from experiments.selectors.differences import Difference
from experiments.workloads import WorkloadDefinition

_MESSAGE: Final = "message_bytes"
_SAME: Final = 0.05


def different_work(compared: Compared) -> str:
    """Return how the work of the sides differs, "steps 10 000 (A), 8 (B)", or "".

    Times of different work are not comparable. A parameter sets the amount of work if the workload's estimate of the
    time follows it.
    """
    stated = {difference.name: difference for difference in compared.settings if difference.apart}
    if "workload" in stated:
        return f"workload {_sides((m.label, workload_title(m.experiment.workload)) for m in compared.members)}"
    metric, experiment = compared.deciding, compared.baseline.experiment
    workload = workloads.find(experiment.workload, experiment.specification.get("parameters"))
    row = compared.baseline.at(compared.names, compared.at)
    if workload is None or metric is None or row is None:
        return ""
    is_whole = metric == TIME or (workload.own_time is not None and metric == workload.own_time.time)
    names = [name for name in stated if is_whole or (name == _MESSAGE and metric == workload.decides)]
    fields = workload.parameters_type.model_fields
    names = [name for name in names if name in fields and _sets_work(workload, row.parameters, stated[name])]
    return ", ".join(f"{parameter_label(name).lower()} {_values(compared, stated[name])}" for name in names)


def _values(compared: Compared, stated: Difference) -> str:
    name, members = stated.name, compared.members
    return _sides((members[n].label, value_words(name, stated.values[n])) for n in stated.stated_by)


def _sides(values: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{value} ({label})" for label, value in values)


def _sets_work(workload: WorkloadDefinition, parameters: Mapping[str, Any], stated: Difference) -> bool:
    """Return whether the estimate of the time differs between the values."""
    values = [stated.values[n] for n in stated.stated_by]
    if not all(isinstance(value, int | float) for value in values) or stated.name in workload.treatments:
        return False
    fields = {key: parameters[key] for key in workload.parameters_type.model_fields if parameters.get(key) is not None}
    ranks = int(parameters.get("hosts") or 1) * int(parameters.get("ranks_per_host") or 1)
    try:
        typed = [workload.parameters_type(**{**fields, stated.name: value}) for value in values]
        estimates = [workload.estimate_s(parameters_of, ranks=ranks) for parameters_of in typed]
    except ValidationError:
        return False
    return not isclose(min(estimates), max(estimates), rel_tol=_SAME)
