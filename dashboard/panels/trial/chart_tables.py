"""The tables behind the charts of a trial's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.charts.panel import Chart, Section
from dashboard.charts.tables import ChartTables
from dashboard.panels.trial.host_charts import COUNTED_VIEWS, host_views
from dashboard.panels.trial.host_samples import NoSamples, samples_of
from dashboard.panels.trial.inside_mpi import inside_mpi
from dashboard.panels.trial.live import live_charts
from dashboard.panels.trial.rank_timeline import rank_timeline
from dashboard.panels.trial.traffic import wire_of
from experiments.models import State, Trial


def charts_of(trial: Trial) -> ChartTables:
    """Return the charts of a trial's page by name, from artifacts or live samples."""
    return ChartTables(f"trial {trial.pk}", lambda: _sections(trial))


def _sections(trial: Trial) -> Sequence[Section]:
    if not trial.is_over:
        return [Section("live", "So far", live_charts(trial.progress))]
    wire = wire_of(trial, _means(trial), has_packets=False) if trial.state == State.FINISHED else {"analysis": False}
    inside = inside_mpi(trial)
    return [
        Section("wire", "On the network", _of_wire(wire) if wire["analysis"] else ()),
        Section("inside-mpi", "Inside MPI", _of_mpi(trial, inside) if inside is not None else ()),
        Section("hosts", "Hosts over time", _of_hosts(trial)),
    ]


def _means(trial: Trial) -> dict[str, float]:
    return dict(trial.measurements.filter(scope="all").values_list("metric", "value"))


def _of_wire(wire: Mapping[str, Any]) -> list[Chart]:
    return [
        Chart("throughput", "Throughput over time", wire["throughput"]),
        Chart("sizes", "Packet size", wire["sizes"]),
        Chart("gaps", "Inter-arrival time", wire["gaps"]),
        Chart("matrix", f"{wire['matrix_of'].capitalize()} traffic", wire["matrix"]),
    ]


def _of_mpi(trial: Trial, inside: Mapping[str, Any]) -> list[Chart]:
    charts = [
        Chart("per-rank", "Inside MPI, rank by rank", inside["per_rank"]),
        Chart("message-sizes", "Message sizes", inside["sizes"]),
        Chart("inside-over-time", "Time inside MPI over the run", inside["over_time"]),
        Chart("asked-matrix", "Requested bytes, rank to rank", inside["messages"]["figure"]),
    ]
    figure = rank_timeline(trial, first="", until="", steps="").get("figure") if inside["has_calls"] else None
    return [*charts, *([Chart("rank-timeline", "Ranks over time", figure)] if figure is not None else [])]


def _of_hosts(trial: Trial) -> list[Chart]:
    try:
        samples = samples_of(trial)
    except NoSamples:
        return []
    views, counted = host_views(samples), host_views(samples, views_of=COUNTED_VIEWS)
    charts = [Chart("hosts", "Hosts over time", views[0][1], views=views)]
    return [*charts, *([Chart("counters", "Counters over time", counted[0][1], views=counted)] if counted else [])]
