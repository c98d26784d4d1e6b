"""Preview of an experiment: commands, time and size. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from statistics import median, stdev
from typing import Any, Final

from django.db.models import QuerySet, Sum

from analysis.conclusions import Factor
from analysis.conclusions.forecast import MOST_POINTS, Forecast, forecast
from analysis.numbers import plural
from experiments import workloads
from experiments.models import Artifact, Cluster, Measurement
from experiments.specification import ExperimentSpec, design
from experiments.specification.design import ConfigurationPlan, Design
from experiments.specification.launch_plan import plan_launch
from workers import launchers
from workers.errors import ClusterUnavailable
from workers.launchers import Recording
from workers.launchers.job import job_of
from workers.trial.inside_mpi import previewed

OVERHEAD_S: Final = 2.0
"""Preparing, capturing and analysing one trial, roughly."""

_MOST_FORECAST: Final = 1000
"""Trials of a forecast if the budget does not limit them."""
_MOST_PAST: Final = 300
"""Newest trials of other configurations that a guess is scaled by."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected elapsed time of one trial of a configuration, and what it rests on.

    ``past_trials`` are of this very configuration, or of others of the same workload when the guess was ``scaled`` by them.
    """

    elapsed_s: float
    past_trials: int
    scaled: bool = False

    @property
    def basis(self) -> str:
        """The basis in words; "rough guess" without a past trial of this workload here."""
        if not self.past_trials:
            return "rough guess, no past trial"
        trials = plural(self.past_trials, "past trial")
        return f"scaled from {trials} of the workload" if self.scaled else trials

    def at_least(self, elapsed_s: float) -> Estimate:
        """Return the estimate with at least this time."""
        return replace(self, elapsed_s=max(self.elapsed_s, elapsed_s))


@dataclass(frozen=True, slots=True)
class DryRun:
    """Preview of one configuration's trial.

    The launch command and those before it, input files with their sizes in bytes, the recording; ``notes`` name what is known
    later.
    """

    argv: list[str]
    preparation: list[list[str]]
    notes: list[str]
    files: dict[str, int]
    recording: Recording


def dry_run(spec: ExperimentSpec, plan: Design, index: int) -> DryRun:
    """Return the preview of configuration ``index``, by the code that runs it.

    Raise Cluster.DoesNotExist, ClusterUnavailable.
    """
    cluster = Cluster.objects.get(slug=spec.cluster)
    launcher = launchers.get(cluster.kind, cluster.settings)
    point = plan.configurations[index]
    names = launcher.host_names(point.hosts)
    launch = plan_launch(spec.workload, point.parameters, spec.cluster)
    job = job_of(launch, hosts=names, directory=Path("TRIAL"), profile=previewed(spec.profile))
    job = launcher.for_program(job)
    if refused := launcher.launch_refusals(job):
        raise ClusterUnavailable(" ".join(refused))
    rehearsal = launcher.rehearse(job)
    return DryRun(
        argv=rehearsal.argv,
        preparation=rehearsal.preparation,
        notes=[
            *rehearsal.notes,
            *(
                f"{name} is read from {path} of the first host when the trial starts."
                for name, path in launch.decks.items()
            ),
            *_on_threads(launch.threads, launch.ranks),
        ],
        files={name: len(text.encode()) for name, text in launch.files.items()},
        recording=launcher.recording(job),
    )


def _on_threads(threads: int, ranks: int) -> list[str]:
    if threads == 1:
        return []
    return [f"{plural(ranks, 'rank')} with {threads} threads each (OMP_NUM_THREADS): {ranks * threads} threads in all."]


def estimates(spec: ExperimentSpec, plan: Design) -> list[Estimate]:
    """Return the expected elapsed time per configuration on its cluster.

    The median of its own past trials; else the workload's guess, scaled by the error of that guess for past trials of other
    configurations, if possible those with as many ranks.
    """
    here = Measurement.objects.filter(metric="elapsed_s", scope="all", trial__cluster__slug=spec.cluster)
    past: dict[str, list[float]] = {}
    rows = here.filter(trial__configuration__hash__in=[c.hash for c in plan.configurations])
    for digest, value in rows.values_list("trial__configuration__hash", "value"):
        past.setdefault(digest, []).append(value)
    unknown = any(point.hash not in past for point in plan.configurations)
    misses = _misses(spec, here) if unknown else {}
    traffic = _traffic(spec) if unknown else {}
    return [
        Estimate(median(past[point.hash]), len(past[point.hash]))
        if point.hash in past
        else _scaled(_guess_s(spec, point.parameters, point.ranks), misses, point.ranks).at_least(
            _transfer_s(point, traffic)
        )
        for point in plan.configurations
    ]


def _traffic(spec: ExperimentSpec) -> dict[str, list[float]]:
    """Return the bytes on the wire of the newest trials, by parameters without link."""
    rows = Measurement.objects.filter(
        metric="wire_bytes", scope="all", trial__cluster__slug=spec.cluster, trial__experiment__workload=spec.workload
    )
    traffic: dict[str, list[float]] = {}
    newest = rows.order_by("-trial_id").values_list("trial__configuration__parameters", "value")[:_MOST_PAST]
    for parameters, value in newest:
        traffic.setdefault(_without_link(parameters), []).append(value)
    return traffic


def _without_link(parameters: Mapping[str, Any]) -> str:
    return repr(sorted((name, value) for name, value in parameters.items() if not name.startswith("link.")))


def _transfer_s(point: ConfigurationPlan, traffic: Mapping[str, list[float]]) -> float:
    """Return the least time in which all ports send what past trials sent."""
    bandwidth, sent = point.parameters.get("link.bandwidth"), traffic.get(_without_link(point.parameters))
    return 8 * median(sent) / point.hosts / bandwidth if bandwidth and sent else 0.0


def _guess_s(spec: ExperimentSpec, parameters: Mapping[str, Any], ranks: int) -> tuple[float, float]:
    """Return the workload's guess, and the time of its bytes on the link, s."""
    workload = workloads.get(spec.workload, spec.parameters)
    workload_parameters = design.workload_parameters(spec.workload, parameters)
    bandwidth = parameters.get("link.bandwidth")
    on_link_s = 8 * workload.bottleneck_bytes(workload_parameters, ranks=ranks) / bandwidth if bandwidth else 0.0
    return workload.estimate_s(workload_parameters, ranks=ranks), on_link_s


def _misses(spec: ExperimentSpec, here: QuerySet[Measurement]) -> dict[int, list[float]]:
    """Return measured time / guess of the newest trials by ranks, without link."""
    rows = here.filter(trial__experiment__workload=spec.workload).order_by("-trial_id")
    misses: dict[int, list[float]] = {}
    past = rows.values_list("trial__configuration__parameters", "trial__configuration__ranks", "value")[:_MOST_PAST]
    for parameters, ranks, value in past:
        try:
            guess_s, on_link_s = _guess_s(spec, parameters, ranks)
        except ValueError:  # parameters of a time when the workload had others
            continue
        if guess_s > 0 and value > on_link_s:
            misses.setdefault(ranks, []).append((value - on_link_s) / guess_s)
    return misses


def _scaled(guess: tuple[float, float], misses: Mapping[int, list[float]], ranks: int) -> Estimate:
    guess_s, on_link_s = guess
    ratios = misses.get(ranks) or [miss for values in misses.values() for miss in values]
    if not ratios:
        return Estimate(guess_s + on_link_s, 0)
    return Estimate(guess_s * median(ratios) + on_link_s, len(ratios), scaled=True)


def total_s(plan: Design, expected: list[Estimate]) -> float:
    """Return the expected seconds of the experiment: one trial after another."""
    return sum(expected[trial.configuration].elapsed_s + OVERHEAD_S for trial in plan.trials)


def forecast_of(spec: ExperimentSpec, plan: Design, expected: list[Estimate]) -> Forecast | None:
    """Return what the rounds of a goal would take; None if it is not known.

    The scatter is that of past trials of the workload on the cluster. Chosen sizes and searches have no forecast: their points follow
    from results.
    """
    goal = spec.goal
    if goal is None or spec.explores or spec.optimised or len(plan.configurations) > MOST_POINTS:
        return None
    scatter = _scatter(spec)
    if scatter is None or not all(estimate.past_trials for estimate in expected):
        return None
    scales = ("hosts", "ranks_per_host")
    return forecast(
        [point.parameters for point in plan.configurations],
        [estimate.elapsed_s for estimate in expected],
        scatter,
        [Factor(n, n, "scale" if n in scales else "treatment", "", n) for n in spec.sweep],
        precision=goal.precision,
        matters=goal.matters,
        at_least=spec.at_least,
        at_most=spec.at_most,
        most_trials=goal.budget.trials or _MOST_FORECAST,
        overhead_s=OVERHEAD_S,
    )


def _scatter(spec: ExperimentSpec) -> float | None:
    """Return the median standard deviation of log times of repeated configurations."""
    rows = Measurement.objects.counted().filter(
        metric="elapsed_s",
        scope="all",
        value__gt=0,
        trial__cluster__slug=spec.cluster,
        trial__experiment__workload=spec.workload,
    )
    values: dict[int, list[float]] = {}
    newest = rows.order_by("-trial_id").values_list("trial__configuration_id", "value")[:_MOST_PAST]
    for configuration, value in newest:
        values.setdefault(configuration, []).append(log(value))
    repeated = [stdev(logs) for logs in values.values() if len(logs) > 1]
    return median(repeated) if repeated else None


def capture_bytes(spec: ExperimentSpec, plan: Design, expected: list[Estimate]) -> float | None:
    """Return the expected size of all captures; None without a past capture here.

    A configuration's own past captures count; else those of the workload per second, if possible with as many ranks.
    """
    sizes_by_hash, rates = _past_captures(spec)
    if not rates:
        return None
    anywhere = median(rate for values in rates.values() for rate in values)
    sizes = []
    for point, estimate in zip(plan.configurations, expected, strict=True):
        rate = median(rates[point.ranks]) if point.ranks in rates else anywhere
        sizes.append(median(sizes_by_hash[point.hash]) if point.hash in sizes_by_hash else rate * estimate.elapsed_s)
    return float(sum(sizes[trial.configuration] for trial in plan.trials if trial.kind != "control"))


def _past_captures(spec: ExperimentSpec) -> tuple[dict[str, list[float]], dict[int, list[float]]]:
    """Return newest captures' sizes by configuration, bytes per second by ranks."""
    rows = Measurement.objects.filter(
        metric="elapsed_s",
        scope="all",
        trial__cluster__slug=spec.cluster,
        trial__experiment__workload=spec.workload,
        trial__artifacts__kind=Artifact.Kind.CAPTURE,
    )
    sizes: dict[str, list[float]] = {}
    rates: dict[int, list[float]] = {}
    columns = ("trial__configuration__hash", "trial__configuration__ranks", "value", "size")
    rows_of_trials = rows.annotate(size=Sum("trial__artifacts__size_bytes")).order_by("-trial_id").values_list(*columns)
    for digest, ranks, elapsed_s, size in rows_of_trials[:_MOST_PAST]:
        sizes.setdefault(digest, []).append(size)
        if elapsed_s > 0:
            rates.setdefault(ranks, []).append(size / elapsed_s)
    return sizes, rates
