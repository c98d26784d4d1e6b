"""The newest trials of a history are found without sorting all of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from experiments.library import load_defaults
from experiments.models import Experiment, HistoryPart, Measurement, Project, Trial
from tests.experiments import factories
from workers.notifications import steps

pytestmark = pytest.mark.django_db
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def measured(name: str, *days: int, project: Project | None = None) -> Experiment:
    """One configuration whose trials ended on these days, the first untimed."""
    made = factories.experiment(name=name, project=project, sweep={"hosts": [2]}, repetitions=len(days))
    for day in days:
        trial = factories.analysing()
        values = {"packets": 7.0} if day == days[0] else {"elapsed_s": 1.0 + day}
        trial.finish(replace(factories.RESULT, measurements={"all": values}))
        Trial.objects.filter(pk=trial.pk).update(ended_at=FIRST + timedelta(days=day))
        Trial.objects.filter(pk=trial.pk).update(trust="degraded")  # what the triggers look at
    connection.check_constraints()  # as a commit does
    return made


def sorted_whole(parts: Any, cluster: int | None) -> list[tuple[Any, ...]]:
    """The same by reading the whole history."""
    rows = Measurement.objects.counted().filter(metric="elapsed_s", scope="all", trial__cluster=cluster)
    expected = rows.filter(trial__configuration__in=parts.values("configuration"))
    columns = ("trial", "value", "trial__experiment", "trial__ended_at")
    return sorted(expected.values_list(*columns), key=lambda row: (row[3], row[0]))


@pytest.mark.parametrize("most", [1, 2, 4, 300])
def test_it_reads_the_newest_trials(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MOST_TRIALS", most)
    load_defaults()
    first = measured("First", 1, 20, 2, 3)
    measured("Second", 4, 18, 5)
    measured("Third", 6, 7, 7, 19)
    measured("Theirs", 8, 30, 31, project=Project.objects.create(slug="theirs", name="Theirs"))
    digest = first.configurations.get().hash
    parts = HistoryPart.objects.filter(hash=digest, cluster=first.cluster_id, experiment__project=first.project_id)
    whole = sorted_whole(parts, first.cluster_id)
    assert len(whole) == 8
    assert steps.newest_trials(parts, first.cluster_id) == whole[-most:]
