"""Parts of histories: written by triggers, enough for the newest trials."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Count, Max, Q

from experiments import deletion
from experiments.library import load_defaults
from experiments.models import Cluster, Experiment, HistoryPart, Project, Trial
from experiments.models.states import measured
from experiments.selectors import history, history_list
from tests.dashboard.histories_measured import LEVEL, measure
from tests.experiments import factories

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def library(db) -> Project:
    return load_defaults()


@pytest.fixture
def person(library) -> User:
    return factories.person("okafor", "maintainer", library)


def parts() -> list[tuple]:
    connection.check_constraints()  # as a commit does
    return sorted(
        HistoryPart.objects.values_list("configuration", "experiment", "cluster", "hash", "trials", "newest_at")
    )


def counted_anew() -> list[tuple]:
    with_time = Count("pk", filter=Q(measurements__metric="elapsed_s", measurements__scope="all"))
    trials = Trial.objects.filter(measured(), cluster__isnull=False, ended_at__isnull=False).order_by()
    rows = trials.values_list("configuration", "experiment", "cluster", "configuration__hash")
    return sorted(rows.annotate(n=with_time, newest=Max("ended_at")))


def at_days(experiment: Experiment, *days: int) -> list[int]:
    """Set the end days of an experiment's trials; return their keys."""
    keys = list(experiment.trials.order_by("pk").values_list("pk", flat=True))
    for key, day in zip(keys, days, strict=True):
        Trial.objects.filter(pk=key).update(ended_at=FIRST + timedelta(days=day))
        Trial.objects.filter(pk=key).update(trust="degraded")  # what the triggers look at
    connection.check_constraints()
    return keys


def newest(person: User, experiment: Experiment) -> list[int]:
    digest = experiment.configurations.get().hash
    return [trial.pk for trial in history.with_value(person, digest, "testbed", "elapsed_s")]


def test_they_follow_all_that_happens_to_trials(library, person):
    steady = measure(library, person, "Steady", LEVEL[:4])
    measure(library, person, "Steady again", LEVEL[:2])
    assert [row[4] for row in parts()] == [4, 2]
    assert parts() == counted_anew()

    gone = steady.trials.first()
    gone.measurements.all().delete()
    gone.superseded = True
    gone.save()
    assert [row[4] for row in parts()] == [3, 2]
    assert parts() == counted_anew()

    kept = deletion.delete(steady, by=person)
    assert [row[4] for row in parts()] == [2]
    deletion.restore_deleted(kept)
    assert [row[4] for row in parts()] == [3, 2]
    assert parts() == counted_anew()


def test_with_value_finds_the_newest_trials_in_any_parts(library, person, monkeypatch):
    """More parts than trials are read, old trials in new parts and reverse."""
    monkeypatch.setattr(history, "MOST_TRIALS", 2)  # of which one more is read
    first = measure(library, person, "First", LEVEL[:3])
    old = at_days(first, 1, 9, 2)
    second = measure(library, person, "Second", LEVEL[:2])
    middle = at_days(second, 8, 3)
    assert newest(person, first) == [old[1], middle[0], middle[1]]
    for number, day in enumerate((4, 5, 6, 7)):
        at_days(measure(library, person, f"Further {number}", LEVEL[:1]), day)
    assert [trial_day(key) for key in newest(person, first)] == [9, 8, 7]


def trial_day(key: int) -> int:
    ended_at = Trial.objects.get(pk=key).ended_at
    assert ended_at is not None
    return (ended_at - FIRST).days


def test_trials_of_others_are_not_read(library, person):
    first = measure(library, person, "First", LEVEL[:2])
    hidden = measure(library, person, "Hidden", LEVEL[:3])
    assert len(newest(person, first)) == 5
    Experiment.objects.filter(pk=hidden.pk).update(project=Project.objects.create(slug="theirs", name="Theirs"))
    assert len(newest(person, first)) == 2
    assert newest(factories.person("stranger"), first) == []


def test_histories_exclude_trials_without_an_end(library, person):
    """Imported ones may have none."""
    experiment = measure(library, person, "Imported", LEVEL[:8])
    unknown = experiment.trials.order_by("pk").first()
    Trial.objects.filter(pk=unknown.pk).update(ended_at=None, trust="degraded")
    assert parts() == counted_anew()
    found = history.history_of(person, experiment.configurations.get().hash, "testbed", "elapsed_s")
    assert len(found.to_dict()["trials"]) == 7
    rows, _ = history_list.histories(history_list.with_histories(person))
    assert [(row.trials, row.experiments) for row in rows] == [(7, 1)]
    assert len(history_list.histories_with_steps(person, rows)) == 1
    assert Cluster.objects.get(slug="testbed").trials.filter(ended_at=None, state="finished").exists()
