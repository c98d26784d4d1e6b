"""Arrays of trials follow their measurements."""

from __future__ import annotations

import shutil
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import transaction

from experiments.models import Artifact, Measurement, Trial, TrialValues
from tests.experiments import factories
from tests.experiments.races import at_once


@pytest.fixture
def trial(db: None) -> Trial:
    factories.experiment()
    return factories.finished()


def array_of(trial: Trial) -> dict[str, float]:
    array = TrialValues.objects.select_related("names").get(trial=trial)
    return dict(zip(array.names.names, array.numbers, strict=True))


def measured(trial: Trial) -> dict[str, float]:
    return {f"{measurement.scope} {measurement.metric}": measurement.value for measurement in trial.measurements.all()}


def test_a_trial_that_finishes_has_its_array(trial: Trial) -> None:
    assert array_of(trial) == measured(trial)
    assert len(array_of(trial)) >= 2


def test_it_follows_what_is_added_changed_moved_and_removed(trial: Trial) -> None:
    another = factories.finished()
    Measurement.objects.create(trial=trial, metric="water.steps_per_s", scope="mpi", value=7.5)
    assert array_of(trial)["mpi water.steps_per_s"] == 7.5
    trial.measurements.filter(metric="elapsed_s").update(value=123.0)
    assert array_of(trial)["all elapsed_s"] == 123.0
    trial.measurements.filter(metric="water.steps_per_s").update(trial=another)
    assert (array_of(trial), array_of(another)) == (measured(trial), measured(another))
    assert "mpi water.steps_per_s" in array_of(another)
    trial.measurements.exclude(metric="elapsed_s").delete()
    assert array_of(trial) == {"all elapsed_s": 123.0}


def test_a_trial_that_failed_after_all_has_none(trial: Trial, session_directory: object) -> None:
    artifact = factories.stored_file(trial, name="measured.json", kind="other")
    Artifact.objects.filter(pk=artifact.pk).delete()
    trial.fail_after_all("Its residual is too large.", artifact)
    assert not TrialValues.objects.filter(trial=trial).exists()


@pytest.mark.django_db(transaction=True)
def test_two_that_change_one_trial_at_once_leave_what_both_wrote() -> None:
    factories.experiment()
    trial = factories.finished()

    def add(number: int) -> None:
        with transaction.atomic():
            Measurement.objects.create(trial=trial, metric=f"water.figure_{number}", value=float(number))

    at_once(add, 4)
    assert array_of(trial) == measured(trial)
    assert {f"all water.figure_{number}" for number in range(4)} <= set(array_of(trial))


def test_store_check_repairs_changed_arrays(trial: Trial) -> None:
    shutil.rmtree(Path(settings.VAR) / "trials", ignore_errors=True)  # files of earlier tests
    another = factories.finished()
    TrialValues.objects.filter(trial=trial).update(numbers=[1.0])
    TrialValues.objects.filter(trial=another).delete()
    assert TrialValues.wrong() == [trial.pk, another.pk]
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("store", "check", "--values", stdout=out)
    assert f"values fixed: trial {trial.pk}" in out.getvalue()
    assert (TrialValues.wrong(), array_of(trial)) == ([], measured(trial))
    call_command("store", "check", "--values", stdout=StringIO())
