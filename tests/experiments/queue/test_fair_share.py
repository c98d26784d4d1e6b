"""Claiming: projects by recent use, experiments by priority and age."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from experiments.models import Cluster, Experiment, Priority, Project, State, Trial, Usage
from experiments.models.states import NO_ROOM
from experiments.selectors import running_trials, waiting
from experiments.selectors.queue_forecast import outlooks
from tests.experiments import factories

pytestmark = pytest.mark.django_db
MANY = {"sweep": {"hosts": [1]}, "repetitions": 6}


@pytest.fixture
def crowd() -> Experiment:
    """An experiment of the default project, first in the queue."""
    return factories.experiment(**MANY)


@pytest.fixture
def guests(crowd: Experiment) -> Experiment:
    """An experiment of another project, after the crowd."""
    return factories.experiment(project=Project.objects.create(slug="guests", name="Guests"), **MANY)


def used(project: Project, machine_s: float, days_ago: int = 0) -> None:
    Usage.objects.create(project=project, day=timezone.now().date() - timedelta(days=days_ago), machine_s=machine_s)


def served(count: int, held_s: float = 60.0) -> list[int]:
    """Run the next trials for ``held_s`` each; return their experiments."""
    served = []
    for _ in range(count):
        trial = factories.analysing()
        began = timezone.now() - timedelta(seconds=held_s)
        Trial.objects.filter(pk=trial.pk).update(preparing_at=began)
        trial.finish(factories.RESULT)
        served.append(trial.experiment_id)
    return served


def test_two_projects_are_served_in_turn_however_long_the_queue_of_the_first(
    crowd: Experiment, guests: Experiment
) -> None:
    assert served(4) in ([crowd.pk, guests.pk] * 2, [crowd.pk, guests.pk, guests.pk, crowd.pk])


def test_claim_prefers_the_project_with_less_recent_use(crowd: Experiment, guests: Experiment) -> None:
    used(crowd.project, 150)
    assert served(3) == [guests.pk] * 3
    assert served(1) == [crowd.pk]


def test_what_was_used_days_ago_counts_for_less(crowd: Experiment, guests: Experiment) -> None:
    used(crowd.project, 1000, days_ago=4)
    used(guests.project, 100)
    assert served(1) == [crowd.pk]


def test_a_trial_that_still_runs_counts_as_used(crowd: Experiment, guests: Experiment) -> None:
    local = Cluster.objects.get(slug="local")
    alone = factories.experiment(project=guests.project, cluster="local", sweep={"hosts": [1]}, repetitions=1)
    alone.prioritise(Priority.HIGH)
    used(crowd.project, 60)
    trial = Trial.claim_next(local, "host:1:1")
    assert trial is not None
    Trial.objects.filter(pk=trial.pk).update(preparing_at=timezone.now() - timedelta(hours=1))
    rows = [row["experiment_id"] for row in waiting()]
    assert rows == [crowd.pk, guests.pk]


def test_priority_orders_experiments_of_one_project(crowd: Experiment, guests: Experiment) -> None:
    urgent, later = factories.experiment(**MANY), factories.experiment(**MANY)
    urgent.prioritise(Priority.HIGH)
    crowd.prioritise(Priority.LOW)
    used(guests.project, 10_000)
    assert served(7) == [urgent.pk] * 6 + [later.pk]


def test_priority_takes_nothing_from_other_projects(crowd: Experiment, guests: Experiment) -> None:
    crowd.prioritise(Priority.HIGH)
    used(crowd.project, 1)
    assert served(1) == [guests.pk]


def test_the_trials_of_a_project_wait_while_its_month_is_used_up(
    crowd: Experiment, guests: Experiment, settings: Any
) -> None:
    settings.QUOTA_MACHINE_HOURS = 2
    used(guests.project, 7200, days_ago=29)
    used(crowd.project, 7199)
    assert served(1) == [crowd.pk]
    assert Trial.claim_next(Cluster.objects.get(slug="testbed"), "host:1:1") is None
    Project.objects.filter(pk=guests.project.pk).update(most_machine_hours=0)
    assert served(1) == [guests.pk]
    Usage.objects.filter(project=crowd.project).update(day=timezone.now().date() - timedelta(days=30))
    assert crowd.pk in served(2)


def test_a_trial_is_charged_for_the_time_that_it_held_its_machines_and_the_testbed_is_one(crowd: Experiment) -> None:
    factories.experiment(sweep={"hosts": [4]}, repetitions=1).prioritise(Priority.HIGH)
    served(1, held_s=100)
    assert Usage.objects.get(project=crowd.project).machine_s == pytest.approx(100, abs=5)
    Cluster.objects.filter(slug="testbed").update(
        kind="ssh", settings={"hosts": ["a", "b", "c", "d"], "login": {"user": "u"}}
    )
    trial = Trial.objects.filter(state=State.QUEUED).first()
    assert trial is not None
    trial.configuration.hosts = 4
    trial.configuration.save()
    Trial.objects.filter(pk=trial.pk).update(
        state=State.PREPARING, worker="host:1:1", preparing_at=timezone.now() - timedelta(seconds=50)
    )
    trial.refresh_from_db()
    trial.fail("It was only a test.")
    assert Usage.objects.get(project=crowd.project).machine_s == pytest.approx(300, abs=10)


def test_a_trial_that_never_started_and_a_clock_set_back_cost_nothing(crowd: Experiment) -> None:
    crowd.trials.filter(state=State.QUEUED).last().cancel()
    served(1, held_s=-3600)
    assert sum(Usage.objects.values_list("machine_s", flat=True)) == 0


def test_a_claim_asks_few_queries_however_many_experiments_wait(
    crowd: Experiment, guests: Experiment, django_assert_max_num_queries: Any
) -> None:
    for _ in range(5):
        factories.experiment(**MANY)
    with django_assert_max_num_queries(17):
        factories.claimed()


def test_outlooks_start_first_for_the_project_with_less_use(crowd: Experiment, guests: Experiment) -> None:
    served(2, held_s=10)  # one of each
    used(Project.objects.create(slug="idle", name="Idle"), 1e6)
    later = factories.experiment(project=guests.project, **MANY)
    rows, running = waiting(), list(running_trials())
    expected = outlooks(rows, running)
    assert expected[crowd.pk].starts_in_s == pytest.approx(0, abs=1)
    assert expected[guests.pk].starts_in_s == pytest.approx(0, abs=1)
    # Fifty seconds of each project in turn, then the rest of the guests alone.
    assert expected[guests.pk].left_s == pytest.approx(100, abs=5)
    assert expected[later.pk].starts_in_s == pytest.approx(100, abs=5)
    assert expected[later.pk].left_s == pytest.approx(160, abs=5)
    used(guests.project, 16, days_ago=1)  # half counts, less than a trial of the crowd's makes up for
    behind = outlooks(waiting(), running)
    assert behind[guests.pk].starts_in_s == pytest.approx(8, abs=2)
    assert behind[guests.pk].ahead == {crowd.pk: 1}


def test_clusters_that_share_a_machine_take_turns(crowd: Experiment) -> None:
    local = Cluster.objects.get(slug="local")
    guests = Project.objects.create(slug="guests", name="Guests")
    alone = factories.experiment(project=guests, cluster="local", sweep={"hosts": [1]}, repetitions=2)
    used(guests, 1000)
    assert Trial.claim_next(local, "host:1:1") is None, "the project with less use is first, on another cluster"
    assert served(1) == [crowd.pk]
    used(crowd.project, 10_000, days_ago=1)
    assert Trial.claim_next(Cluster.objects.get(slug="testbed"), "host:1:1") is None
    assert (trial := Trial.claim_next(local, "host:1:1")) is not None
    assert trial.experiment_id == alone.pk


def test_a_cluster_that_keeps_its_turn_waits_for_no_other(crowd: Experiment) -> None:
    local = Cluster.objects.get(slug="local")
    guests = Project.objects.create(slug="guests", name="Guests")
    factories.experiment(project=guests, cluster="local", sweep={"hosts": [1]}, repetitions=1)
    used(guests, 1000)
    assert Trial.claim_next(local, "host:1:1") is None
    assert Trial.claim_next(local, "host:1:1", keeps_turn=True) is not None


def test_a_trial_that_waits_for_room_blocks_no_other_cluster(crowd: Experiment) -> None:
    testbed, local = Cluster.objects.get(slug="testbed"), Cluster.objects.get(slug="local")
    factories.experiment(cluster="testbed", sweep={"hosts": [1]}, repetitions=1)
    factories.experiment(cluster="local", sweep={"hosts": [1]}, repetitions=1)
    trial = Trial.claim_next(testbed, "host:1:1")
    assert trial is not None
    trial.requeue("Queued again, no attempt lost.")
    assert Trial.claim_next(local, "host:1:1") is None, "the trial can start"
    trial = Trial.claim_next(testbed, "host:1:1")
    assert trial is not None
    trial.requeue(f"{NO_ROOM}: 1 kB free, 2 kB required.")
    assert Trial.claim_next(local, "host:1:1") is not None


def test_a_cluster_does_not_wait_for_one_that_cannot_start(crowd: Experiment) -> None:
    farm = Cluster.objects.create(slug="farm", name="Farm", kind="ssh", settings={"hosts": ["n1", "n2"]})
    half = Cluster.objects.create(slug="half", name="Half", kind="ssh", settings={"hosts": ["n1"]})
    other = Cluster.objects.create(slug="other", name="Other", kind="ssh", settings={"hosts": ["n2"]})
    for slug in ("farm", "half", "other"):
        factories.experiment(cluster=slug, sweep={"hosts": [1]}, repetitions=2)
    assert Trial.claim_next(half, "host:1:1") is None, "farm is older"
    Cluster.objects.filter(pk=farm.pk).update(enabled=False)
    assert Trial.claim_next(other, "host:1:1") is not None
    Cluster.objects.filter(pk=farm.pk).update(enabled=True)
    assert Trial.claim_next(half, "host:1:1") is not None, "farm needs n2 as well, which is in use"
