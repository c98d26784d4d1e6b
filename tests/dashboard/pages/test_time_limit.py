"""A trial that met its time limit: advice on its page, and what its point lacks."""

from __future__ import annotations

from typing import Any

from experiments.models import Trial
from experiments.models.states import OVER_TIME
from experiments.selectors.study import study_of
from tests.experiments import factories


def failed(message: str) -> Trial:
    trial = factories.running()
    trial.fail(message)
    return trial


def test_its_page_names_the_limit_to_raise_and_its_point_counts_it(page: Any) -> None:
    experiment = factories.experiment(sweep={"hosts": [1]}, repetitions=3)
    late = failed(f"TIP4P water {OVER_TIME} of 1 min and was stopped.\n\nTotal wall time: 0:00:59")
    other = failed("TIP4P water ended with exit code 1.")
    factories.finished()
    assert "Time limit" in page.get(late.get_absolute_url()).content.decode().partition('id="over-time"')[2]
    assert 'id="over-time"' not in page.get(other.get_absolute_url()).content.decode()
    (point,) = study_of(experiment).points
    assert (point.over_time, point.excluded["failed"], len(point.values["elapsed_s"])) == (1, 2, 1)
