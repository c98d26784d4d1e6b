"""Published results: loading and protection."""

from __future__ import annotations

import pytest

from experiments.errors import ReadOnly
from experiments.library import load_published
from experiments.models import Experiment, State
from experiments.specification import design
from tests.experiments.specifications import specification

pytestmark = pytest.mark.django_db

HOSTS = (2, 4, 6, 8, 10, 12)


def water() -> Experiment:
    load_published()
    return Experiment.objects.get(slug="guster-2007-water")


def test_it_is_loaded_again_when_the_file_has_changed() -> None:
    experiment = water()
    Experiment.objects.filter(pk=experiment.pk).update(specification_hash="of an older file")
    assert load_published() == 1
    again = Experiment.objects.get(slug=experiment.slug)
    assert again.pk != experiment.pk
    assert again.trials.count() == len(HOSTS)


def test_it_is_finished_and_cannot_be_changed() -> None:
    experiment = water()
    assert set(experiment.trials.values_list("state", flat=True)) == {State.FINISHED}
    with pytest.raises(ReadOnly, match="clone it"):
        experiment.cancel()
    changes = (
        lambda: experiment.add_design(design.expand(specification())),
        lambda: experiment.revise(specification()),
        experiment.rerun_failed,
        experiment.trials.get(position=1).queue_attempt,
    )
    for change in changes:
        with pytest.raises(ReadOnly):
            change()
