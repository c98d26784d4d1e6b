"""Parsing stored outputs again, after a parser was improved.

Figures of merit and tables change, measurements stay. A trial that failed because its parser refused the output is finished when the
parser reads it now.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from experiments import workloads
from experiments.common import plain_files
from experiments.common.storable import storable
from experiments.errors import NotPlain, OutputError, StoreUnavailable, Tampered
from experiments.files import (
    MEASURED_NAME,
    deliver,
    forget_delivered,
    read_measured,
    take_back,
    trial_directory,
    write_measured,
)
from experiments.models import Artifact, Measurement, State, Trial, TrialResult
from experiments.selectors.diagnosis import forget_diagnosis
from experiments.workloads import Parsed
from experiments.workloads.command import programs_from
from experiments.workloads.definition import ProgramDefinition
from experiments.workloads.extractors import Extractor
from experiments.workloads.kept_files import MOST_READ_BYTES, selected

TRIED: Final = 20
"""Newest trials whose outputs are read before a definition changes."""


@dataclass(slots=True)
class Reparsed:
    """Counts of the trials, and the sentence of each refused one (by trial)."""

    changed: int = 0
    finished: int = 0
    """Failed trials that have a result now."""
    unchanged: int = 0
    without_output: int = 0
    """Trials whose output was removed or never stored."""
    refused: dict[int, str] = field(default_factory=dict)

    @property
    def trials(self) -> int:
        return self.changed + self.finished + self.unchanged + self.without_output + len(self.refused)


def candidates() -> QuerySet[Trial]:
    """Return trials with a parsed or refused output, neither published nor imported."""
    refused = Q(state=State.FAILED) & Exists(Artifact.objects.filter(trial=OuterRef("pk"), name=MEASURED_NAME))
    return Trial.objects.filter(Q(state=State.FINISHED) | refused, experiment__published=False, experiment__origin={})


def reparse(trials: Iterable[Trial]) -> Reparsed:
    """Parse the outputs of ``candidates()`` again, one transaction per trial.

    A trial whose output is refused now keeps its results, unless a user's own patterns or limits reject the run.
    """
    counts = Reparsed()
    for trial in trials:
        measured = read_measured(trial) if trial.state == State.FAILED else None
        if (
            trial.experiment.published
            or trial.experiment.is_imported
            or (trial.state != State.FINISHED and measured is None)
        ):
            continue
        texts = _texts(trial, _workload(trial))
        if texts is None:
            counts.without_output += 1
            continue
        output, files = texts
        try:
            configuration = trial.configuration
            parsed = _workload(trial).read(output, files, {**configuration.parameters, "ranks": configuration.ranks})
        except OutputError as error:
            counts.refused[trial.pk] = str(error)
            if measured is None and _workload(trial).brought:
                _refuse(trial, f"{error} (output parsed again).")
                forget_diagnosis(trial.experiment)
            continue
        if measured is not None:
            trial.finish_after_all(_with_figures(measured, parsed, _workload(trial)))
            counts.finished += 1
        elif _store(trial, parsed):
            counts.changed += 1
        else:
            counts.unchanged += 1
            continue
        forget_diagnosis(trial.experiment)
    return counts


def newly_refused(definition: ProgramDefinition, trials: QuerySet[Trial]) -> tuple[dict[int, str], int]:
    """Return the refusals of the newest finished ``trials``, and how many were tried."""
    workload = programs_from([(1, definition)])[definition.name]
    newest = candidates().filter(state=State.FINISHED, experiment__workload=definition.name, pk__in=trials.values("pk"))
    refused: dict[int, str] = {}
    tried = list(newest.select_related("configuration").order_by("-pk")[:TRIED])
    for trial in tried:
        texts = _texts(trial, workload)
        parameters = {**trial.configuration.parameters, "ranks": trial.configuration.ranks}
        try:
            if texts is not None:
                workload.read(*texts, parameters)
        except OutputError as error:
            refused[trial.pk] = str(error)
    return refused, len(tried)


@dataclass(frozen=True, slots=True)
class Relabelled:
    """A figure whose stored values would get another unit."""

    label: str
    before: str
    after: str
    values: int
    is_same_number: bool
    """Only the unit changes: a value of 5 000 000 cells/s would read 5 000 000 Mcells/s."""


def relabelled(before: ProgramDefinition, after: ProgramDefinition) -> list[Relabelled]:
    """Return the figures with stored values whose unit changes."""
    figures, changed = _figures(before), []
    for name, figure in _figures(after).items():
        old = figures.get(name, figure)
        values = Measurement.objects.filter(metric=f"{after.name}.{name}").count() if old.unit != figure.unit else 0
        if values:
            same = old.model_copy(update={"unit": figure.unit}) == figure
            changed.append(Relabelled(figure.label or name, old.unit, figure.unit, values, same))
    return changed


def _figures(definition: ProgramDefinition) -> dict[str, Extractor]:
    return {row["name"]: Extractor.model_validate(row) for row in definition.extract}


def _refuse(trial: Trial, message: str) -> None:
    """Fail a finished trial; store its measurements with its output."""
    measurements: dict[str, dict[str, float]] = {}
    for scope, metric, value in trial.measurements.values_list("scope", "metric", "value"):
        if not metric.startswith((f"{trial.experiment.workload}.", "start_end_")):
            measurements.setdefault(scope, {})[metric] = value
    result = TrialResult(
        measurements=measurements,
        not_available=trial.not_available,
        trust=trial.trust,
        trust_reasons=trial.trust_reasons,
        environment=trial.environment.facts if trial.environment else {},
        conditions=trial.conditions,
    )
    file = trial_directory(trial) / MEASURED_NAME
    file.parent.mkdir(parents=True, exist_ok=True)
    write_measured(file, result)
    measured = Artifact.describe(trial.pk, Artifact.Kind.OTHER, file)
    deliver(trial, [measured])
    try:
        trial.fail_after_all(message, measured)
    except BaseException:
        take_back([measured])
        raise
    forget_delivered(trial)


def _with_figures(measured: TrialResult, parsed: Parsed, workload: workloads.WorkloadDefinition) -> TrialResult:
    before = measured.measurements.get("all", {})
    of_all = {**before, **workload.outside_its_work(before.get("elapsed_s", 0.0), parsed.figures), **parsed.figures}
    return replace(measured, measurements={**measured.measurements, "all": of_all}, tables=parsed.tables)


def _workload(trial: Trial) -> workloads.WorkloadDefinition:
    return workloads.get(trial.experiment.workload, trial.configuration.parameters)


def _texts(trial: Trial, workload: workloads.WorkloadDefinition) -> tuple[str, Mapping[str, str]] | None:
    """Return the output and the files that a workload parses.

    None if a stored file is missing or changed, or if they are too long.
    """
    others = list(trial.artifacts.filter(kind=Artifact.Kind.OTHER))
    parsed = selected(workload.outputs, [artifact.name for artifact in others])
    printed = trial.artifacts.filter(kind=Artifact.Kind.STDOUT)
    stored = [*printed, *(artifact for artifact in others if artifact.name in parsed)]
    if sum(artifact.size_bytes for artifact in stored) > MOST_READ_BYTES:
        return None
    try:
        texts = {a.name: plain_files.decoded(a.content()) for a in stored if a.removed_at is None}
    except StoreUnavailable:
        raise
    except (Tampered, NotPlain, OSError):
        return None
    if len(texts) < len(stored):
        return None
    stdout = next((a.name for a in stored if a.kind == Artifact.Kind.STDOUT), None)
    return None if stdout is None else (texts.pop(stdout), texts)


def _store(trial: Trial, parsed: Parsed) -> bool:
    """Replace the trial's figures and tables; return whether anything differs."""
    slug = trial.experiment.workload
    figures = {name: value for name, value in parsed.figures.items() if math.isfinite(value)}
    elapsed_s = trial.measurements.filter(metric="elapsed_s", scope=Measurement.Scope.ALL).values_list(
        "value", flat=True
    )
    figures |= _workload(trial).outside_its_work(next(iter(elapsed_s), 0.0), figures)
    tables = storable(dict(parsed.tables))
    with transaction.atomic():
        # No key: the end of an ideal-network run adds measurements to the trial (migration 0017).
        locked = Trial.objects.select_for_update(no_key=True).get(pk=trial.pk)
        of_output = Q(metric__startswith=f"{slug}.") | Q(metric__startswith="start_end_")
        old = Measurement.objects.filter(of_output, trial=locked, scope=Measurement.Scope.ALL)
        if dict(old.values_list("metric", "value")) == figures and locked.tables == tables:
            return False
        old.delete()
        Measurement.objects.bulk_create(Measurement(trial=locked, metric=m, value=v) for m, v in figures.items())
        Trial.objects.filter(pk=locked.pk).update(tables=tables)
        with connection.cursor() as cursor:
            # Triggers update summaries only if a state changes.
            cursor.execute("SELECT experiments_summarise(%s)", [locked.configuration_id])
    return True
