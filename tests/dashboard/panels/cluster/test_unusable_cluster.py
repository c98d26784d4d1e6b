"""Pages, REST and commands refuse an unusable cluster in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from experiments.models import Cluster, Experiment
from tests.dashboard.api.clients import EXPERIMENTS, client_of
from tests.dashboard.laboratory import specification

SENTENCE = "the cluster 'testbed' is switched off; switched on: local"


@pytest.fixture
def experiment(submit: Any) -> Experiment:
    """An experiment whose cluster was switched off since."""
    experiment: Experiment = submit()
    Cluster.objects.filter(slug="testbed").update(enabled=False)
    return experiment


@pytest.mark.parametrize("kind", ["post", "put"])
def test_over_rest_it_names_the_field(experiment: Experiment, person: Any, kind: str) -> None:
    address = EXPERIMENTS if kind == "post" else f"{EXPERIMENTS}{experiment.slug}/"
    answer = getattr(client_of(person), kind)(address, specification(repetitions=5), "application/json")
    assert answer.status_code == 400
    assert answer.json()["errors"] == [{"path": "cluster", "message": SENTENCE}]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("cluster", "sentence"),
    [
        ("moon", "cluster: the cluster 'moon' is unknown; switched on: local, testbed"),
        ("local", "sweep.hosts: the cluster This machine has 1 host, not 4"),
    ],
)
def test_on_the_command_line_it_is_one_line(tmp_path: Path, cluster: str, sentence: str) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(specification(cluster=cluster)))
    with pytest.raises(CommandError) as caught:
        call_command("run_experiment", file)
    assert (str(caught.value), caught.value.returncode) == (f"{file}: {sentence}", 2)
    assert not Experiment.objects.exists()
