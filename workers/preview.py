"""Preview of an experiment: commands, time and size. Writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import median, stdev
from typing import Final

from django.conf import settings
from django.db.models import QuerySet, Sum

from analysis.conclusions import Factor
from analysis.conclusions.forecast import MOST_POINTS, Forecast, forecast
from analysis.numbers import plural
from experiments.models import Artifact, Cluster, Measurement, Trial
from experiments.selectors.trial_times import Estimate, TrialTimes
from experiments.specification import ExperimentSpec
from experiments.specification.design import Design
from experiments.specification.launch_plan import plan_launch
from workers import launchers
from workers.errors import ClusterUnavailable
from workers.launchers import Recording
from workers.launchers.job import job_of
from workers.launchers.limits import Limits
from workers.trial.inside_mpi import previewed

_MOST_FORECAST: Final = 1000
"""Trials of a forecast if the budget does not limit them."""
_MOST_PAST: Final = 300
"""Newest trials of the workload that sizes of captures and scatter are from."""


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
    limits = Limits(hidden=(Path(settings.VAR),))
    job = job_of(launch, hosts=names, directory=Path("TRIAL"), limits=limits, profile=previewed(spec.profile))
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


def estimates(spec: ExperimentSpec, plan: Design, past: QuerySet[Trial] | None = None) -> list[Estimate]:
    """Return the expected times per configuration on its cluster.

    ``past``: the trials that the user may see; None: all.
    """
    cluster = Cluster.objects.filter(slug=spec.cluster).values_list("pk", flat=True).first() or 0
    times = TrialTimes.of({(cluster, spec.workload, point.hash) for point in plan.configurations}, past)
    return [times.estimate(cluster, spec.workload, point.hash, point.parameters) for point in plan.configurations]


def total_s(plan: Design, expected: list[Estimate]) -> float:
    """Return the expected seconds of the experiment: one trial after another."""
    return sum(expected[trial.configuration].held_s for trial in plan.trials)


def repeats_s(spec: ExperimentSpec, plan: Design, expected: list[Estimate]) -> float:
    """Return the seconds of repeating each measured trial; 0 if none is repeated."""
    measured = [trial for trial in plan.trials if trial.kind == "measured"] if spec.disturbed == "repeat" else []
    return sum(expected[trial.configuration].held_s for trial in measured)


def forecast_of(
    spec: ExperimentSpec, plan: Design, expected: list[Estimate], past: QuerySet[Trial] | None = None
) -> Forecast | None:
    """Return what the rounds of a goal would take; None if it is not known.

    The scatter is that of past trials of the workload on the cluster. Chosen sizes and searches have no forecast: their points follow
    from results.
    """
    goal = spec.goal
    if goal is None or spec.explores or spec.optimised or len(plan.configurations) > MOST_POINTS:
        return None
    scatter = _scatter(spec, past)
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
        overhead_s=median(estimate.overhead_s for estimate in expected),
    )


def _scatter(spec: ExperimentSpec, past: QuerySet[Trial] | None) -> float | None:
    """Return the median standard deviation of log times of repeated configurations."""
    rows = Measurement.objects.counted().filter(
        metric="elapsed_s",
        scope="all",
        value__gt=0,
        trial__cluster__slug=spec.cluster,
        trial__experiment__workload=spec.workload,
    )
    values: dict[int, list[float]] = {}
    rows = rows if past is None else rows.filter(trial__in=past)
    newest = rows.order_by("-trial_id").values_list("trial__configuration_id", "value")[:_MOST_PAST]
    for configuration, value in newest:
        values.setdefault(configuration, []).append(log(value))
    repeated = [stdev(logs) for logs in values.values() if len(logs) > 1]
    return median(repeated) if repeated else None


def capture_bytes(
    spec: ExperimentSpec, plan: Design, expected: list[Estimate], past: QuerySet[Trial] | None = None
) -> float | None:
    """Return the expected size of all captures; None without a past capture here.

    A configuration's own past captures count; else those of the workload per second, if possible with as many ranks. A host
    alone sends nothing, so that its captures are no base for several hosts.
    """
    sizes_by_hash, rates = _past_captures(spec, past)
    sizes = []
    for point, estimate in zip(plan.configurations, expected, strict=True):
        if point.hash in sizes_by_hash:
            sizes.append(median(sizes_by_hash[point.hash]))
            continue
        similar = {ranks: values for (is_alone, ranks), values in rates.items() if is_alone == (point.hosts == 1)}
        base = similar.get(point.ranks) or [rate for values in similar.values() for rate in values]
        if not base:
            return None
        sizes.append(median(base) * estimate.elapsed_s)
    return float(sum(sizes[trial.configuration] for trial in plan.trials if trial.kind != "control"))


def _past_captures(
    spec: ExperimentSpec, past: QuerySet[Trial] | None
) -> tuple[dict[str, list[float]], dict[tuple[bool, int], list[float]]]:
    """Return past sizes by configuration, bytes per second by (one host, ranks)."""
    rows = Measurement.objects.filter(
        metric="elapsed_s",
        scope="all",
        trial__cluster__slug=spec.cluster,
        trial__experiment__workload=spec.workload,
        trial__artifacts__kind=Artifact.Kind.CAPTURE,
    )
    rows = rows if past is None else rows.filter(trial__in=past)
    sizes: dict[str, list[float]] = {}
    rates: dict[tuple[bool, int], list[float]] = {}
    columns = (*(f"trial__configuration__{name}" for name in ("hash", "hosts", "ranks")), "value", "size")
    rows_of_trials = rows.annotate(size=Sum("trial__artifacts__size_bytes")).order_by("-trial_id").values_list(*columns)
    for digest, hosts, ranks, elapsed_s, size in rows_of_trials[:_MOST_PAST]:
        sizes.setdefault(digest, []).append(size)
        if elapsed_s > 0:
            rates.setdefault((hosts == 1, ranks), []).append(size / elapsed_s)
    return sizes, rates
