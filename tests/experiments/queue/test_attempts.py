"""Bulk attempts equal single attempts."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.models import State, Trial
from tests.experiments import factories


def columns(trial: Trial) -> dict[str, Any]:
    """Return the columns of a trial without its key and time."""
    names = [field.attname for field in trial._meta.concrete_fields]
    return {name: getattr(trial, name) for name in names if name not in ("id", "queued_at")}


@pytest.mark.django_db
def test_queue_attempts_equals_single_attempts() -> None:
    experiment = factories.experiment(warmups=1)
    failed = factories.running()
    failed.beat({"note": "half"})
    failed.fail("It was only a test.")
    experiment.trials.filter(state=State.QUEUED).update(state=State.FAILED, trust="good", tables={"a": [1]})
    expected = [columns(trial.next_attempt()) for trial in experiment.trials.order_by("position")]
    assert experiment.rerun_failed() == len(expected)
    waiting = experiment.trials.filter(superseded=False).order_by("position")
    assert [columns(trial) for trial in waiting] == expected
    assert None not in {trial.queued_at for trial in waiting}
    assert experiment.trials.filter(superseded=True).count() == len(expected)
