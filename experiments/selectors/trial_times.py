"""Expected times of trials, by past ones: for the preview and for the queue."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median
from typing import Any, Final, Self

from django.db.models import Aggregate, Count, Exists, F, FloatField, OuterRef, QuerySet

from analysis.numbers import plural
from experiments import workloads
from experiments.models import Experiment, Measurement, State, Trial
from experiments.specification import design

OVERHEAD_S: Final = 2.0
"""Preparing, capturing and analysing one trial, roughly, if no past trial shows it."""
_MOST_PAST: Final = 300
"""Newest trials of other configurations that a guess is scaled by."""
_MOST_EXPERIMENTS: Final = 50
"""Newest experiments with finished trials, whose trials these are."""
_BANDWIDTH: Final = "link.bandwidth"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected times of one trial of a configuration, and what they rest on.

    ``past_trials`` are of this very configuration, or of others of the same workload when the guess was ``scaled`` by them.
    """

    elapsed_s: float
    past_trials: int
    scaled: bool = False
    of_other_hosts: bool = False
    """The scaled past trials had only more or only fewer hosts."""
    of_other_links: bool = False
    """The scaled past trials had other settings of the link."""
    overhead_s: float = OVERHEAD_S
    """Time beside it for which the trial holds its hosts: preparation and analysis."""

    @property
    def held_s(self) -> float:
        """The time for which the trial holds its hosts."""
        return self.elapsed_s + self.overhead_s

    @property
    def basis(self) -> str:
        """The basis in words; "rough guess" without a past trial of this workload here."""
        if not self.past_trials:
            return "rough guess, no past trial"
        trials = plural(self.past_trials, "past trial")
        if self.of_other_hosts or self.of_other_links:
            return f"rough guess from {trials}, other {'hosts' if self.of_other_hosts else 'links'}"
        return f"scaled from {trials} of the workload" if self.scaled else trials

    def at_least(self, elapsed_s: float) -> Estimate:
        """Return the estimate with at least this elapsed time."""
        return replace(self, elapsed_s=max(self.elapsed_s, elapsed_s))


@dataclass(frozen=True, slots=True)
class _PastTrials:
    """The newest finished trials of one workload on one cluster."""

    misses: Mapping[int, list[float]]
    """Measured time / guess by ranks, without the time on the link."""
    traffic: Mapping[str, list[float]]
    """Bytes on the wire by parameters without the link."""
    overhead_s: float
    links: Set[str]
    """Settings of the link."""
    hosts: Set[int]

    @classmethod
    def of(cls, workload: str, rows: Iterable[tuple[Any, ...]]) -> Self:
        """Return them from rows of (metric, parameters, ranks, value, begin, end)."""
        misses: dict[int, list[float]] = {}
        traffic: dict[str, list[float]] = {}
        overheads = []
        links, hosts = set(), set()
        for metric, parameters, ranks, value, began, ended in rows:
            if metric == "wire_bytes":
                traffic.setdefault(_without_link(parameters), []).append(value)
                continue
            links.add(_link(parameters))
            hosts.add(int(parameters["hosts"]))
            overheads.append(max((ended - began).total_seconds() - value, 0.0))
            try:
                guess_s, on_link_s = _guess_s(workload, parameters)
            except (KeyError, ValueError):  # parameters of a time when the workload had others
                continue
            if guess_s > 0 and value > on_link_s:
                misses.setdefault(ranks, []).append((value - on_link_s) / guess_s)
        return cls(misses, traffic, median(overheads) if overheads else OVERHEAD_S, links, hosts)

    def estimate(self, workload: str, parameters: Mapping[str, Any]) -> Estimate:
        """Return the guess, scaled by past trials, if possible of as many ranks."""
        guess_s, on_link_s = _guess_s(workload, parameters)
        ranks = design.ranks_of(parameters)
        ratios = self.misses.get(ranks) or [miss for values in self.misses.values() for miss in values]
        expected = Estimate(guess_s + on_link_s, 0)
        if ratios:
            scaled_s = guess_s * median(ratios) + on_link_s
            expected = Estimate(
                scaled_s,
                len(ratios),
                scaled=True,
                of_other_hosts=not min(self.hosts) <= int(parameters["hosts"]) <= max(self.hosts),
                of_other_links=_link(parameters) not in self.links,
                overhead_s=self.overhead_s,
            )
        return expected.at_least(self._transfer_s(parameters))

    def _transfer_s(self, parameters: Mapping[str, Any]) -> float:
        """Return the least time in which all ports send what past trials sent."""
        bandwidth, sent = parameters.get(_BANDWIDTH), self.traffic.get(_without_link(parameters))
        return 8 * median(sent) / int(parameters["hosts"]) / bandwidth if bandwidth and sent else 0.0


@dataclass(frozen=True, slots=True)
class TrialTimes:
    """Expected times of trials: the one base of previews and forecasts.

    The medians of past trials of the same configuration on the cluster; else the workload's guess, scaled by the error of that
    guess for the newest trials of other configurations there.
    """

    measured: Mapping[tuple[int, str], Estimate]
    """By cluster and hash of the configuration."""
    past: Mapping[tuple[int, str], _PastTrials]
    """By cluster and workload, for configurations without past trials."""

    @classmethod
    def of(cls, configurations: Set[tuple[int, str, str]], past: QuerySet[Trial] | None = None) -> Self:
        """Read the past of (cluster, workload, hash) with at most two queries.

        ``past`` are the trials that count; None: all.
        """
        trials = Trial.objects.all() if past is None else past
        clusters = {cluster for cluster, _, _ in configurations}
        measured = _measured(trials, clusters, {digest for _, _, digest in configurations}) if configurations else {}
        unknown = {
            (cluster, workload) for cluster, workload, digest in configurations if (cluster, digest) not in measured
        }
        return cls(measured, _past(trials, unknown) if unknown else {})

    def estimate(self, cluster: int, workload: str, digest: str, parameters: Mapping[str, Any]) -> Estimate:
        """Return the expected times. Raise KeyError for an unknown workload."""
        return self.measured.get((cluster, digest)) or self.past.get((cluster, workload), _NO_PAST).estimate(
            workload, parameters
        )


_NO_PAST: Final = _PastTrials({}, {}, OVERHEAD_S, frozenset(), frozenset())


class _Median(Aggregate):
    function = "percentile_cont"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"


def _measured(past: QuerySet[Trial], clusters: Set[int], digests: Set[str]) -> dict[tuple[int, str], Estimate]:
    """Return the median times of finished trials by cluster and configuration."""
    # Without trials during which the clock was set back.
    trials = past.filter(
        state=State.FINISHED,
        cluster__in=clusters,
        configuration__hash__in=digests,
        ended_at__gte=F("preparing_at"),
        measurements__metric="elapsed_s",
        measurements__scope="all",
    )
    rows = trials.order_by().values_list("cluster_id", "configuration__hash").annotate(
        elapsed_s=_Median("measurements__value", output_field=FloatField()),
        held=_Median(F("ended_at") - F("preparing_at")),
        count=Count("pk"),
    )  # fmt: skip
    return {
        (cluster, digest): Estimate(elapsed_s, count, overhead_s=max(held.total_seconds() - elapsed_s, 0.0))
        for cluster, digest, elapsed_s, held, count in rows
    }


def _past(past: QuerySet[Trial], pairs: Set[tuple[int, str]]) -> dict[tuple[int, str], _PastTrials]:
    """Return the newest trials by cluster and workload."""
    queries = [_newest(past, cluster, workload) for cluster, workload in sorted(pairs)]
    rows: dict[tuple[int, str], list[tuple[Any, ...]]] = {}
    for cluster, workload, *row in queries[0].union(*queries[1:], all=True) if queries[1:] else queries[0]:
        rows.setdefault((cluster, workload), []).append(tuple(row))
    return {pair: _PastTrials.of(pair[1], values) for pair, values in rows.items()}


def _newest(past: QuerySet[Trial], cluster: int, workload: str) -> QuerySet[Measurement, Any]:
    """Return times and bytes of the newest trials; read while trials run."""
    # Without trials during which the clock was set back.
    ended = past.filter(state=State.FINISHED, ended_at__gte=F("preparing_at"))
    has_ended = Exists(ended.filter(experiment=OuterRef("pk")))
    experiments = Experiment.objects.filter(has_ended, cluster=cluster, workload=workload).order_by("-pk").values("pk")
    trials = ended.filter(experiment__in=experiments[:_MOST_EXPERIMENTS])
    newest = trials.order_by("-pk").values("pk")[:_MOST_PAST]
    rows = Measurement.objects.filter(metric__in=("elapsed_s", "wire_bytes"), scope="all", trial__in=newest)
    return rows.order_by().values_list(
        "trial__cluster_id",
        "trial__experiment__workload",
        "metric",
        "trial__configuration__parameters",
        "trial__configuration__ranks",
        "value",
        "trial__preparing_at",
        "trial__ended_at",
    )


def _link(parameters: Mapping[str, Any]) -> str:
    return repr(sorted((name, value) for name, value in parameters.items() if name.startswith("link.")))


def _without_link(parameters: Mapping[str, Any]) -> str:
    return repr(sorted((name, value) for name, value in parameters.items() if not name.startswith("link.")))


def _guess_s(workload: str, parameters: Mapping[str, Any]) -> tuple[float, float]:
    """Return the workload's guess, and the time of its bytes on the link, s."""
    return _cached_guess_s(workload, json.dumps(parameters, sort_keys=True))


@lru_cache(maxsize=4096)
def _cached_guess_s(workload: str, written: str) -> tuple[float, float]:
    """Guess once for each configuration: the header asks every few seconds."""
    parameters: dict[str, Any] = json.loads(written)
    ranks, bandwidth = design.ranks_of(parameters), parameters.get(_BANDWIDTH)
    definition = workloads.get(workload, parameters)
    of_workload = design.workload_parameters(workload, parameters)
    on_link_s = 8 * definition.bottleneck_bytes(of_workload, ranks=ranks) / bandwidth if bandwidth else 0.0
    return definition.estimate_s(of_workload, ranks=ranks), on_link_s
