"""The migration that keeps one control run in stored specifications."""

from importlib import import_module

from django.apps import apps

from experiments.models import Experiment
from tests.experiments import factories

MIGRATION = import_module("experiments.migrations.0037_control_runs")


def test_stored_specifications_keep_their_number_of_control_runs(db: None) -> None:
    experiment, without = factories.experiment(control=1), factories.experiment()
    order = list(experiment.specification)
    for row in (experiment, experiment.versions.get()):
        row.specification = {**row.specification, "control": True}
        row.save()
    untouched = Experiment.objects.get(pk=without.pk).specification
    MIGRATION.name_the_number(apps, None)
    experiment.refresh_from_db()
    assert experiment.specification["control"] == experiment.versions.get().specification["control"] == 1
    assert list(experiment.specification) == order
    assert Experiment.objects.get(pk=without.pk).specification == untouched
