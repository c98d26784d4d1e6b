"""Network models exclude disturbed trials, and links with clean equals."""

from __future__ import annotations

import pytest
from django.db.models import F

from analysis.sensitivity import Link
from experiments.models import Configuration, Experiment, Measurement, Trial
from experiments.selectors.network import make_prediction, network_study_of
from tests.dashboard.studies_measured import needs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]
LINK = Link(0.35e-3, 700e6)


@pytest.fixture
def study() -> Experiment:
    return needs()


def disturb(*trials: Trial) -> None:
    """Mark trials as disturbed and triple their times."""
    chosen = [trial.pk for trial in trials]
    Trial.objects.filter(pk__in=chosen).update(trust="degraded", conditions={"disturbances": ["other programs"]})
    Measurement.objects.filter(trial__in=chosen, metric="elapsed_s").update(value=3 * F("value"))


def links(study: Experiment) -> dict[Configuration, tuple[float, float]]:
    rows = study.configurations.order_by("position")
    return {row: (row.parameters["link.delay"], row.parameters["link.bandwidth"]) for row in rows}


def test_a_disturbed_trial_of_each_link_changes_no_model(study: Experiment) -> None:
    before = network_study_of(study).fits[0].fit
    disturbed = [row.trials.first() for row in links(study)]
    disturb(*disturbed)
    found = network_study_of(study)
    assert len(found.fits[0].fit.runs.elapsed) == len(before.runs.elapsed) - len(disturbed)
    assert max(found.fits[0].fit.runs.elapsed) < 1.05 * max(before.runs.elapsed)
    assert not {trial.pk for trial in disturbed} & set(make_prediction(study, LINK).evidence)


def test_a_disturbed_link_is_excluded_if_clean_ones_have_its_levels(study: Experiment) -> None:
    known = links(study)
    delays, rates = zip(*known.values(), strict=True)
    inner = next(row for row, (delay, rate) in known.items() if delays.count(delay) > 1 and rates.count(rate) > 1)
    count = len(network_study_of(study).fits[0].points)
    disturb(*inner.trials.all())
    found = network_study_of(study)
    assert len(found.fits[0].points) == count - 1
    assert known[inner] not in {
        (p.parameters["link.delay"], p.parameters["link.bandwidth"]) for p in found.fits[0].points
    }


def test_a_disturbed_link_with_a_level_of_its_own_counts_and_weakens_the_answer(study: Experiment) -> None:
    known = links(study)
    delays, rates = zip(*known.values(), strict=True)
    only = next(row for row, (delay, rate) in known.items() if 1 in (delays.count(delay), rates.count(rate)))
    count = len(network_study_of(study).fits[0].points)
    disturb(*only.trials.all())
    found = network_study_of(study)
    assert len(found.fits[0].points) == count
    assert found.answer.strength != "firm"
