"""Old outputs parsed again, after a parser was improved: figures of merit and tables change, everything that was measured stays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.db import connection, transaction

from experiments import workloads
from experiments.diagnosis import forget_diagnosis
from experiments.errors import OutputError
from experiments.models import Artifact, Measurement, State, Trial
from experiments.plain_data import storable
from experiments.studies import forget_findings
from experiments.workloads import Parsed


@dataclass(slots=True)
class Reparsed:
    """What became of the trials: counts, and the sentence of each that the parser refuses (by trial)."""

    changed: int = 0
    unchanged: int = 0
    without_output: int = 0
    """Retention has taken the files, or they were never kept."""
    refused: dict[int, str] = field(default_factory=dict)

    @property
    def trials(self) -> int:
        return self.changed + self.unchanged + self.without_output + len(self.refused)


def reparse(trials: Iterable[Trial]) -> Reparsed:
    """Parse the kept outputs of finished trials again, one transaction per trial.

    A trial whose output the parser refuses now keeps what it had. Published results have no output and are never touched.
    """
    counts = Reparsed()
    for trial in trials:
        if trial.state != State.FINISHED or trial.experiment.published:
            continue
        texts = _texts(trial)
        if texts is None:
            counts.without_output += 1
            continue
        output, files = texts
        try:
            parsed = _workload(trial).parse(output, files)
        except OutputError as error:
            counts.refused[trial.pk] = str(error)
            continue
        if _store(trial, parsed):
            counts.changed += 1
            forget_diagnosis(trial.experiment)
            forget_findings(trial.experiment)
        else:
            counts.unchanged += 1
    return counts


def _workload(trial: Trial) -> workloads.Workload:
    return workloads.get(trial.experiment.workload, trial.configuration.parameters)


def _texts(trial: Trial) -> tuple[str, Mapping[str, str]] | None:
    """Return standard output and the files that the run wrote; None where one of those that were kept is gone."""
    kept = trial.artifacts.filter(kind__in=[Artifact.Kind.STDOUT, Artifact.Kind.OTHER])
    if any(a.removed_at is not None or not a.file.is_file() for a in kept):
        return None
    texts = {a.name: a.file.read_text(errors="replace") for a in kept}
    stdout = next((a.name for a in kept if a.kind == Artifact.Kind.STDOUT), None)
    return None if stdout is None else (texts.pop(stdout), texts)


def _store(trial: Trial, parsed: Parsed) -> bool:
    """Replace the trial's figures and tables; return whether anything differs."""
    slug = trial.experiment.workload
    figures = {name: value for name, value in parsed.figures.items() if math.isfinite(value)}
    tables = storable(dict(parsed.tables))
    with transaction.atomic():
        locked = Trial.objects.select_for_update().get(pk=trial.pk)
        own = Measurement.objects.filter(trial=locked, scope=Measurement.Scope.ALL, metric__startswith=f"{slug}.")
        if dict(own.values_list("metric", "value")) == figures and locked.tables == tables:
            return False
        own.delete()
        Measurement.objects.bulk_create(Measurement(trial=locked, metric=m, value=v) for m, v in figures.items())
        Trial.objects.filter(pk=locked.pk).update(tables=tables)
        with connection.cursor() as cursor:
            # The summaries follow the states of trials, and this one's has not changed.
            cursor.execute("SELECT experiments_summarise(%s)", [locked.configuration_id])
    return True
