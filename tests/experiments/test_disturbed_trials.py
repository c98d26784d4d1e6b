"""Disturbed trials: one automatic repeat, and exclusion with a clean trial."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection, connections

from dashboard.panels.experiment.excluded_trials import why_apart
from experiments.models import Cluster, Event, Experiment, Measurement, State, Summary, Trial
from experiments.selectors import configuration_rows, excluded_trials
from experiments.selectors.compared_members import chosen_members, load_trials
from experiments.selectors.study import study_of
from experiments.specification import parse
from tests.experiments import factories

LOAD = {"disturbances": ["other programs took 40 % of the processors while no core was free"]}
REASON = "disturbed by other load"


def result(elapsed_s: float, *, disturbed: bool) -> Any:
    measured = replace(factories.RESULT, measurements={"all": {"elapsed_s": elapsed_s}, "mpi": {}})
    return replace(measured, trust="degraded", conditions=LOAD) if disturbed else measured


def end_next(elapsed_s: float, *, disturbed: bool, may_repeat: bool = True) -> tuple[Trial, Trial | None]:
    """Finish the next trial; return it and its repeat."""
    trial = factories.analysing()
    return trial, trial.finish(result(elapsed_s, disturbed=disturbed), may_repeat=may_repeat)


def one_point(**changes: Any) -> Experiment:
    return factories.experiment(**{"sweep": {"hosts": [1]}, "repetitions": 1, **changes})


@pytest.mark.django_db
def test_a_disturbed_trial_is_repeated_last_in_the_order_and_stays() -> None:
    experiment = factories.experiment()
    trial, repeat = end_next(9.0, disturbed=True)
    assert repeat is not None
    for name in ("configuration_id", "kind", "repetition", "cluster_id"):
        assert getattr(repeat, name) == getattr(trial, name)
    assert (repeat.state, repeat.attempt, repeat.position) == (State.QUEUED, 2, 5)
    assert (trial.state, trial.superseded) == (State.FINISHED, False)
    assert (bool(Trial.repeats_among([trial])), bool(Trial.repeats_among([repeat]))) == (False, True)
    assert experiment.trials.current().count() == 5


@pytest.mark.django_db
def test_an_experiment_ends_with_the_repeat_of_its_last_trial() -> None:
    one_point()
    end_next(9.0, disturbed=True)
    assert not Event.objects.filter(kind=Event.Kind.ENDED).exists()
    end_next(5.0, disturbed=False)
    assert Event.objects.filter(kind=Event.Kind.ENDED).count() == 1


@pytest.mark.django_db
def test_a_repeat_that_is_disturbed_too_is_not_repeated_and_both_count() -> None:
    experiment = one_point()
    end_next(9.0, disturbed=True)
    repeat, again = end_next(8.0, disturbed=True)
    assert bool(Trial.repeats_among([repeat]))
    assert again is None
    (point,) = study_of(experiment).points
    assert (list(point.values["elapsed_s"]), point.disturbed, dict(point.excluded)) == ([9.0, 8.0], 2, {})
    assert excluded_trials(experiment) == []


@pytest.mark.django_db
def test_a_lost_repeat_is_tried_again_and_is_still_the_only_repeat() -> None:
    one_point()
    end_next(9.0, disturbed=True)
    attempt = factories.running().mark_lost("Gone.")
    assert attempt is not None
    repeat, again = end_next(8.0, disturbed=True)
    assert (repeat.pk, repeat.attempt, bool(Trial.repeats_among([repeat])), again) == (attempt.pk, 3, True, None)


@pytest.mark.django_db
def test_a_disturbed_trial_with_a_clean_one_is_excluded() -> None:
    experiment = one_point()
    trial, _ = end_next(9.0, disturbed=True)
    clean, _ = end_next(5.0, disturbed=False)
    (point,) = study_of(experiment).points
    assert (list(point.values["elapsed_s"]), point.disturbed, dict(point.excluded)) == ([5.0], 0, {REASON: 1})
    assert point.lost == 0
    (row,) = configuration_rows(experiment, ["elapsed_s"])
    assert row.trial_ids["elapsed_s"] == [clean.pk]
    assert list(Measurement.objects.counted().values_list("trial", flat=True)) == [clean.pk]
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # summaries are written at the end of a transaction
    assert Summary.objects.get(metric="elapsed_s").samples == [5.0]
    assert excluded_trials(experiment) == [trial]
    assert why_apart(experiment, [trial, clean]) == {trial.pk: REASON}
    members = chosen_members(factories.person("root", is_superuser=True), [f"e:{experiment.slug}", f"t:{trial.pk}"])
    load_trials(members)
    assert [[t.pk for row in m.counted.values() for t in row] for m in members] == [[clean.pk], [trial.pk]]


@pytest.mark.django_db
def test_a_clean_trial_of_another_point_excludes_nothing() -> None:
    experiment = factories.experiment(sweep={"hosts": [1, 2]}, repetitions=1)
    end_next(9.0, disturbed=True, may_repeat=False)
    end_next(5.0, disturbed=False)
    assert [list(p.values["elapsed_s"]) for p in study_of(experiment).points] == [[9.0], [5.0]]


@pytest.mark.django_db
def test_no_repeat_if_the_specification_or_a_quota_forbids_it() -> None:
    one_point(disturbed="keep")
    assert end_next(9.0, disturbed=True)[1] is None
    one_point()
    assert end_next(9.0, disturbed=True, may_repeat=False)[1] is None


@pytest.mark.django_db
def test_no_repeat_of_what_is_no_longer_asked_for() -> None:
    experiment = one_point(warmups=1)
    assert end_next(9.0, disturbed=True)[1] is None  # a warm-up
    trial = factories.analysing()
    Trial.objects.get(pk=trial.pk).cancel()
    assert trial.finish(result(9.0, disturbed=True), may_repeat=True) is None
    experiment.add_repetitions(1)
    trial = factories.analysing()
    Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings={"hosts": ["a", "b", "c", "d"]})
    experiment.revise(parse({**experiment.specification, "cluster": "rack"}))
    assert trial.finish(result(9.0, disturbed=True), may_repeat=True) is None


@pytest.mark.django_db(transaction=True)
def test_a_cancellation_that_comes_while_the_repeat_is_queued_cancels_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = one_point()
    queue, cancelled = Trial._queue_repeat, []

    def cancel() -> None:
        try:
            cancelled.append(Experiment.objects.get(pk=experiment.pk).cancel())
        finally:
            connections.close_all()

    thread = threading.Thread(target=cancel)

    def meanwhile(trial: Trial) -> Trial | None:
        thread.start()
        deadline = time.monotonic() + 20
        with connection.cursor() as cursor:
            while time.monotonic() < deadline:  # until it waits for this transaction
                cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
                if cursor.fetchone()[0]:
                    return queue(trial)
        pytest.fail("the cancellation waits for nothing")

    monkeypatch.setattr(Trial, "_queue_repeat", meanwhile)
    _, repeat = end_next(9.0, disturbed=True)
    thread.join()
    assert repeat is not None
    repeat.refresh_from_db()
    assert (cancelled, repeat.state) == ([1], State.CANCELLED)


@pytest.mark.django_db
def test_a_disturbed_trial_and_its_repeat_can_both_run_again() -> None:
    experiment = one_point()
    end_next(9.0, disturbed=True)
    end_next(8.0, disturbed=True)
    assert experiment.trials.current().order_by("attempt").queue_attempts() == 2
    assert sorted(experiment.trials.current().values_list("attempt", flat=True)) == [3, 4]
    trial, _ = end_next(7.0, disturbed=False)
    assert trial.queue_attempt().attempt == 5
