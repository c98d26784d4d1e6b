"""Every metric that a trial can have: the catalogue's and the workloads' own figures of merit, under one roof."""

from __future__ import annotations

from typing import Final

from analysis.catalogue import METRICS, Metric
from experiments import workloads

HEADLINE: Final = (
    "cpu_mean_rank_s",
    "elapsed_s",
    "packets",
    "interarrival_mean_s",
    "throughput_Bps",
    "packet_intensity_pps",
)
"""The six of the published table of 2007, in its order."""


def find(identifier: str) -> Metric:
    """Return the description of a metric or figure of merit. Raise KeyError for an unknown one."""
    if identifier in METRICS:
        return METRICS[identifier]
    workload = workloads.get(identifier.partition(".")[0])
    figure = next((f for f in workload.figures if f.id == identifier), None)
    if figure is None:
        raise KeyError(identifier)
    return Metric(
        id=figure.id,
        label=figure.label,
        unit=figure.unit,
        direction=figure.direction,
        definition=figure.definition,
        source=workload.title,
        section="run",
    )
