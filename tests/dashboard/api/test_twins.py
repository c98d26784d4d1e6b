"""What twins on an ideal network say of a trial, as REST tells it."""

from __future__ import annotations

import pytest

from experiments.library import load_defaults
from experiments.metrics import FROM_TWINS
from experiments.models import Kind
from tests.dashboard.api.clients import TRIALS, client_of
from tests.experiments import factories
from tests.experiments.selectors.twins import submitted

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("ideal", [True, False], ids=["with a twin", "without"])
def test_a_trial_has_both_efficiencies_or_the_reason_of_their_absence(ideal: bool) -> None:
    trial = submitted(load_defaults(), ideal=ideal).trials.filter(kind=Kind.MEASURED).first()
    assert trial is not None
    told = client_of(factories.person("ada", "viewer")).get(f"{TRIALS}{trial.pk}/").json()
    assert set(FROM_TWINS) & {*told["metrics"]} == (set(FROM_TWINS) if ideal else set())
    assert set(FROM_TWINS) & {*told["not_available"]} == (set() if ideal else set(FROM_TWINS))
