"""Generated trials: marked, complete, summarised, and gone with one command."""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from experiments.management.commands.seed_repository import generate
from experiments.models import Measurement, Project, Summary, Trial
from tests.experiments import factories


@pytest.mark.django_db
def test_it_generates_and_removes_without_touching_what_was_measured() -> None:
    factories.experiment()
    mine = factories.finished()
    assert generate(60) == 60
    trials = Trial.objects.filter(experiment__project__slug="generated")
    assert set(trials.values_list("worker", "state")) == {("generated", "finished")}
    assert Measurement.objects.filter(trial__in=trials).count() == 60 * 60
    row = Summary.objects.filter(configuration__trials__in=trials, metric="elapsed_s").distinct()
    assert [each.n for each in row] == [5] * 12
    call_command("seed_repository", remove=True, verbosity=0)
    assert not Project.objects.filter(slug="generated").exists()
    assert list(Trial.objects.filter(state="finished", experiment__published=False)) == [mine]


def test_it_refuses_a_senseless_number() -> None:
    with pytest.raises(CommandError):
        call_command("seed_repository", trials=0)
