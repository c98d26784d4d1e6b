"""Finishing a trial in one transaction."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import IntegrityError

from experiments.models import Artifact, Environment, Lease, Measurement, State, Trial
from tests.experiments import factories
from tests.experiments.factories import RESULT

pytestmark = pytest.mark.django_db


def test_it_writes_everything_that_was_measured() -> None:
    factories.experiment()
    trial = factories.analysing()
    trial.finish(replace(RESULT, artifacts=[factories.stored_file(trial)]))
    trial.refresh_from_db()
    values = set(trial.measurements.values_list("scope", "metric", "value"))
    assert values == {("all", "elapsed_s", 1.5), ("all", "packets", 1200.0), ("mpi", "packets", 1000.0)}
    assert trial.not_available == {"retransmissions": "the capture has no TCP"}
    assert trial.trust == "good"
    assert trial.tables == {"MPI task timing breakdown": [{"section": "Pair", "mean_s": 0.5}]}
    assert trial.environment is not None
    assert trial.environment.facts == {"kernel": "6.1"}
    artifact = trial.artifacts.get()
    assert artifact.file.read_bytes() == b"hello\n"
    assert artifact.size_bytes == 6
    assert artifact.sha256 == "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"


def test_it_leaves_no_row_behind_when_one_insert_fails() -> None:
    factories.experiment()
    trial = factories.analysing()
    file = factories.stored_file(trial)
    with pytest.raises(IntegrityError):
        trial.finish(replace(RESULT, artifacts=[file, factories.stored_file(trial)]))
    stored = Trial.objects.get(pk=trial.pk)
    assert stored.state == State.ANALYSING
    assert not Measurement.objects.exists()
    assert not Artifact.objects.exists()
    assert not Environment.objects.exists()
    assert Lease.objects.filter(trial=trial).exists()
    trial.error("It could not be stored.", "Traceback ...")  # and its worker can still say so
    assert Trial.objects.get(pk=trial.pk).state == State.ERRORED


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_non_finite_values_are_not_stored(value: float) -> None:
    factories.experiment()
    trial = factories.analysing()
    trial.finish(replace(RESULT, measurements={"all": {"elapsed_s": 1.0, "packets": value}}, tables={"t": [value]}))
    trial.refresh_from_db()
    assert trial.measurements.get().metric == "elapsed_s"
    assert trial.not_available["packets"] == f"was {value}, which is not a number"
    assert trial.tables == {"t": [None]}


def test_it_keeps_one_row_per_distinct_environment() -> None:
    factories.experiment()
    trials = [factories.finished() for _ in range(2)]
    trials.append(factories.finished(replace(RESULT, environment={"kernel": "6.2"})))
    assert len({trial.environment_id for trial in trials}) == 2
    assert Environment.objects.count() == 2
