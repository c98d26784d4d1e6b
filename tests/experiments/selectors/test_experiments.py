"""Selectors of experiments, with a fixed number of queries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from experiments import selectors
from experiments.models import Trial
from tests.experiments import factories
from tests.experiments.factories import RESULT
from tests.experiments.specifications import specification

pytestmark = pytest.mark.django_db


def test_it_counts_progress_without_replaced_attempts_in_one_query(django_assert_num_queries: Any) -> None:
    busy = factories.experiment(sweep={"hosts": [1, 2, 4]}, repetitions=2)
    idle = factories.experiment()
    factories.finished(replace(RESULT, trust="degraded"))
    factories.running().mark_lost("Gone.")
    factories.running().fail("It exited with status 1.")
    factories.running()
    with django_assert_num_queries(1):
        progress = selectors.progress_of([busy, idle])
    counts = progress[busy.pk]
    assert (counts.total, counts.finished, counts.failed, counts.active, counts.queued) == (6, 1, 1, 1, 3)
    assert (counts.flagged, counts.over, counts.is_over, counts.status) == (1, 2, False, "running")
    assert progress[idle.pk].status == "waiting"
    assert selectors.progress_of([]) == {}


@pytest.mark.parametrize(
    ("states", "status"),
    [
        (["queued", "queued"], "waiting"),
        (["queued", "finished"], "running"),
        (["running", "queued"], "running"),
        (["finished", "finished"], "finished"),
        (["finished", "failed"], "finished"),
        (["failed", "lost"], "failed"),
        (["cancelled", "cancelled"], "cancelled"),
    ],
)
def test_it_has_one_word_for_an_experiment(states: list[str], status: str) -> None:
    experiment = factories.experiment(repetitions=1)
    for trial, state in zip(experiment.trials.all(), states, strict=True):
        Trial.objects.filter(pk=trial.pk).update(state=state)
    assert selectors.progress_of([experiment])[experiment.pk].status == status


def test_it_gives_raw_values_of_counted_trials_per_configuration(django_assert_num_queries: Any) -> None:
    experiment = factories.experiment(warmups=1, repetitions=2)
    for number in range(1, 7):
        factories.finished(replace(RESULT, measurements={"all": {"elapsed_s": float(number)}}))
    with django_assert_num_queries(3):
        rows = selectors.configuration_rows(experiment, ["elapsed_s"])
    assert [row.hosts for row in rows] == [1, 2]
    # Interleaved in alternating rounds: warm-ups took 1 and 2; the counted values are those of the measured repetitions.
    assert [row.values["elapsed_s"] for row in rows] == [[3.0, 6.0], [4.0, 5.0]]
    assert [(row.median("elapsed_s"), row.range("elapsed_s")) for row in rows] == [(4.5, (3.0, 6.0)), (4.5, (4.0, 5.0))]
    assert rows[0].median("packets") is None
    assert [len(row.trials) for row in rows] == [3, 3]


def test_it_leaves_values_of_replaced_attempts_out() -> None:
    experiment = factories.experiment(sweep={"hosts": [1]}, repetitions=1)
    old = factories.finished(replace(RESULT, measurements={"all": {"elapsed_s": 1.0}}))
    old.queue_attempt()
    new = factories.finished(replace(RESULT, measurements={"all": {"elapsed_s": 2.0}}))
    (row,) = selectors.configuration_rows(experiment, ["elapsed_s"])
    assert row.values == {"elapsed_s": [2.0]}
    assert selectors.repetitions_of(new, ["elapsed_s"]) == {"elapsed_s": [(new.pk, 2.0)]}


def test_it_gives_no_repetitions_of_a_point_that_a_revision_dropped() -> None:
    experiment = factories.experiment(repetitions=1)
    dropped, remaining = factories.finished(), factories.finished()
    assert selectors.repetitions_of(dropped, ["elapsed_s"]) == {"elapsed_s": [(dropped.pk, 1.5)]}
    experiment.revise(specification(repetitions=1, sweep={"hosts": [2]}))
    assert selectors.repetitions_of(dropped, ["elapsed_s"]) == {"elapsed_s": []}
    assert selectors.repetitions_of(remaining, ["elapsed_s"]) == {"elapsed_s": [(remaining.pk, 1.5)]}


def test_waiting_and_running_trials(django_assert_num_queries: Any) -> None:
    first, second = factories.experiment(), factories.experiment()
    trial = factories.running()
    with django_assert_num_queries(3):
        waiting = selectors.waiting()
        (running,) = selectors.running_trials()
        assert (running.experiment.slug, running.configuration.hosts) == (first.slug, 1)
    assert running == trial
    assert [(row["slug"], row["count"], row["cluster_name"]) for row in waiting] == [
        (first.slug, 3, "Virtual test-bed"),
        (second.slug, 4, "Virtual test-bed"),
    ]


def test_it_knows_the_neighbours_of_a_trial() -> None:
    experiment = factories.experiment()
    keys = list(experiment.trials.order_by("position").values_list("pk", flat=True))
    first, second = (Trial.objects.get(pk=key) for key in keys[:2])
    assert selectors.neighbours(first) == (None, keys[1])
    assert selectors.neighbours(second) == (keys[0], keys[2])
