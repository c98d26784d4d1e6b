"""Input of the parts: counted values, and published ones of the workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from analysis.conclusions import ExperimentIntervals
from analysis.conclusions.observations.economics import ClusterFacts
from analysis.statistics import Interval
from dashboard.panels.experiment.results import published_name
from experiments import workloads
from experiments.cluster_kinds.facts import facts_of
from experiments.metrics import deciding_metric, find
from experiments.models import Experiment, Measurement
from experiments.selectors import ConfigurationRow, configuration_rows, related_publications
from experiments.selectors.counted_values import measured_metrics
from experiments.selectors.diagnosis import together_of
from experiments.workloads import WorkloadDefinition


@dataclass(frozen=True)
class ResultSource:
    """Rows of one experiment, with its name."""

    experiment: Experiment
    name: str
    rows: Sequence[ConfigurationRow]

    def with_metric(self, metric: str) -> list[ConfigurationRow]:
        return [row for row in self.rows if row.values.get(metric)]


@dataclass(frozen=True)
class Measured:
    """An experiment, its workload (None: not registered), and published studies."""

    main: ResultSource
    published: Sequence[ResultSource]
    workload: WorkloadDefinition | None

    @classmethod
    def of(cls, experiment: Experiment) -> Measured:
        """Read everything in a fixed number of queries per experiment."""
        others = [] if experiment.published else list(related_publications(experiment))
        name = published_name(experiment) if experiment.published else "Measured"
        return cls(
            ResultSource(experiment, name, _rows(experiment)),
            [ResultSource(other, published_name(other), _rows(other)) for other in others],
            _workload(experiment),
        )

    @classmethod
    def alone(cls, experiment: Experiment) -> Measured:
        """Read an experiment without published results."""
        return cls(ResultSource(experiment, "", _rows(experiment)), (), _workload(experiment))

    @cached_property
    def together(self) -> ExperimentIntervals:
        """Intervals of the experiment's answer; the parts use no others."""
        return together_of(self.main.experiment)

    def interval(self, metric: str, over: Mapping[str, Any], under: Mapping[str, Any]) -> Interval | None:
        """Return the interval of the ratio of two points; None for other metrics."""
        return self.together.ratio(over, under) if self.together.metric == metric else None

    @property
    def sources(self) -> list[ResultSource]:
        """Return the experiment, then the published ones."""
        return [self.main, *self.published]

    @property
    def hosts_share_a_machine(self) -> bool:
        cluster = self.main.experiment.cluster
        return cluster is not None and cluster.traits.hosts_share_cores

    @property
    def deciding(self) -> str | None:
        """Return the deciding metric; elapsed time if it was not measured."""
        decided = deciding_metric(self.main.experiment.workload, self.main.experiment.specification)
        return next((m for m in (decided, "elapsed_s") if self.main.with_metric(m)), None)

    def higher_is_better(self, metric: str) -> bool:
        return find(metric, self.main.experiment.specification).direction == "higher"


def cluster_facts(experiment: Experiment) -> ClusterFacts:
    """Return the facts of the cluster, or of the publication."""
    return facts_of(stated_facts(experiment))


def stated_facts(experiment: Experiment) -> Mapping[str, Any]:
    """Return the same facts as they are stored."""
    if experiment.published:
        facts: Mapping[str, Any] = (experiment.source or {}).get("facts", {})
        return facts
    return {} if experiment.cluster is None else experiment.cluster.facts


def _rows(experiment: Experiment) -> list[ConfigurationRow]:
    return configuration_rows(experiment, measured_metrics(experiment, Measurement.Scope.ALL))


def _workload(experiment: Experiment) -> WorkloadDefinition | None:
    return workloads.find(experiment.workload, experiment.specification.get("parameters"))
