"""Turns of clusters that share hosts: one lasts for some trials."""

from __future__ import annotations

import pytest

from experiments.models import Cluster, Project, Trial
from tests.experiments import factories
from workers.trial import pipeline


def _finish(trial: Trial) -> None:
    trial.start_running(command=["true"], conditions={})
    trial.start_analysing()
    trial.finish(factories.RESULT)


@pytest.mark.parametrize(("turn_s", "executed"), [(300.0, 4), (0.0, 1)])
def test_a_cluster_keeps_its_turn_for_some_trials(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, turn_s: float, executed: int
) -> None:
    factories.experiment(sweep={"hosts": [1]}, repetitions=4)
    guests = Project.objects.create(slug="guests", name="Guests")
    factories.experiment(project=guests, cluster="local", sweep={"hosts": [1]}, repetitions=4)
    monkeypatch.setattr(pipeline, "_TURN_S", turn_s)
    monkeypatch.setattr(pipeline, "execute", _finish)
    assert pipeline.run_waiting(Cluster.objects.get(slug="testbed")) == executed
