"""Summaries read the trials of their configuration only, whatever the planner expects."""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.utils import timezone

from experiments.library import load_defaults
from experiments.models import Experiment, Measurement, State, Summary, Trial
from experiments.specification import parse
from tests.experiments.selectors.twins import SPEC, committed

TRIALS, METRICS = 60, 40


def _finish(experiment: Experiment) -> None:
    experiment.trials.update(state=State.FINISHED, ended_at=timezone.now())
    Measurement.objects.bulk_create(
        Measurement(trial=trial, metric=f"figure.{number}", scope="all", value=1.0)
        for trial in experiment.trials.all()
        for number in range(METRICS)
    )


def _read() -> int:
    """Return the rows of trials that this transaction has read."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = %s",
            [Trial._meta.db_table],
        )
        return int(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_an_import_after_a_vacuum_of_emptied_tables_reads_only_its_trials() -> None:
    project = load_defaults()
    spec = parse({**SPEC, "ideal": False, "repetitions": TRIALS})
    emptied = Experiment.submit(spec, project=project)
    _finish(emptied)
    emptied.trials.all().delete()
    with connection.cursor() as cursor:
        # The tables keep their pages, and the planner expects one row in them.
        cursor.execute("VACUUM (TRUNCATE false) experiments_trial, experiments_measurement")
    with transaction.atomic():
        _finish(Experiment.submit(spec, project=project))
        before = _read()
        committed()
        assert _read() - before < METRICS * TRIALS * TRIALS  # was 30 times as many
    assert Summary.objects.filter(n=TRIALS).count() == METRICS
