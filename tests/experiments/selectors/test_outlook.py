"""Queue forecast from the times that similar trials held their hosts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from experiments.models import Cluster, Experiment, Trial
from experiments.selectors import queue_forecast, running_trials, trial_times
from experiments.selectors import waiting as waiting_rows
from experiments.selectors.queue_forecast import Outlook, outlooks
from experiments.selectors.trial_times import TrialTimes
from tests.experiments import factories

pytestmark = pytest.mark.django_db
WEEK = timedelta(days=7)


def ended(*trials: Trial, held_s: float, ago: timedelta = WEEK) -> None:
    """Set how long these trials held their hosts, and how long ago they ended."""
    end = timezone.now() - ago
    Trial.objects.filter(pk__in=[trial.pk for trial in trials]).update(
        preparing_at=end - timedelta(seconds=held_s), ended_at=end
    )


def outlook_of(experiment: Experiment) -> Outlook:
    return outlooks(waiting_rows(), list(running_trials()))[experiment.pk]


def test_it_expects_repetitions_added_a_week_later_to_last_as_long_as_those_before() -> None:
    experiment = factories.experiment(sweep={"hosts": [1]}, repetitions=3)
    ended(*(factories.finished() for _ in range(3)), held_s=5)
    experiment.add_repetitions(2)
    assert outlook_of(experiment).left_s == pytest.approx(10)
    Trial.objects.filter(pk=factories.running().pk).update(preparing_at=timezone.now() - timedelta(seconds=2))
    expected = outlook_of(experiment)
    assert expected.left_s == pytest.approx(8, abs=1)
    assert expected.starts_in_s == pytest.approx(3, abs=1)


def test_outlook_ignores_cancelled_trials() -> None:
    experiment = factories.experiment(sweep={"hosts": [1]}, repetitions=4)
    ended(factories.finished(), held_s=5)
    experiment.trials.filter(state="queued").first().cancel()
    assert outlook_of(experiment).left_s == pytest.approx(10)


def test_it_expects_each_configuration_to_last_as_long_as_before_and_an_unknown_one_by_the_scaled_guess() -> None:
    experiment = factories.experiment(sweep={"hosts": [1, 2, 4]}, repetitions=2)
    one, two = factories.finished(), factories.finished()
    assert (one.configuration.hosts, two.configuration.hosts) == (1, 2)
    ended(one, held_s=10)
    ended(two, held_s=70)
    four = experiment.configurations.get(hosts=4)
    key = (four.experiment.cluster_id, "water", four.hash)
    estimate = TrialTimes.of({key}).estimate(*key, four.parameters)
    assert (estimate.scaled, estimate.past_trials) == (True, 2)
    assert estimate.overhead_s == pytest.approx((10 + 70) / 2 - 1.5), "of the trials that ended"
    # Waiting: 1 and 2 hosts once more, 4 hosts twice.
    assert outlook_of(experiment).left_s == pytest.approx(10 + 70 + 2 * estimate.held_s)


def test_it_estimates_some_of_many_unknown_configurations(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.experiment(sweep={"hosts": [1]}, repetitions=1)
    ended(factories.finished(), held_s=5)
    wide = factories.experiment(
        parameters={}, sweep={"hosts": [1], "molecules": [128, 256, 384, 512, 640]}, repetitions=2
    )
    everything = outlook_of(wide).left_s
    monkeypatch.setattr(queue_forecast, "MOST_ESTIMATED", 3)
    some = outlook_of(wide).left_s
    assert everything is not None
    assert some == pytest.approx(everything, rel=0.3)


def test_it_expects_a_new_experiment_to_last_as_long_as_the_same_configurations_elsewhere() -> None:
    factories.experiment(sweep={"hosts": [1]}, repetitions=1)
    ended(factories.finished(), held_s=5)
    again = factories.experiment(sweep={"hosts": [1]}, repetitions=3)
    assert outlook_of(again) == Outlook(0.0, pytest.approx(15))


def test_outlook_has_no_time_for_an_unknown_workload() -> None:
    assert outlook_of(factories.experiment()) == Outlook(0.0, None)


def test_it_remembers_its_own_trials_however_many_others_ended_since(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_times, "_MOST_PAST", 1)
    experiment = factories.experiment(sweep={"hosts": [1]}, repetitions=1)
    ended(factories.finished(), held_s=5)
    factories.experiment(workload="command", parameters={"program": ["true"]}, sweep={"hosts": [1]}, repetitions=3)
    ended(*(factories.finished() for _ in range(3)), held_s=100, ago=timedelta(minutes=1))
    experiment.add_repetitions(1)
    assert outlook_of(experiment).left_s == pytest.approx(5)


def test_it_counts_the_trials_of_others_that_come_first() -> None:
    first = factories.experiment(sweep={"hosts": [1]}, repetitions=3)
    second = factories.experiment(sweep={"hosts": [1]}, repetitions=2)
    ended(factories.finished(), held_s=5)
    Trial.objects.filter(pk=factories.running().pk).update(preparing_at=timezone.now() - timedelta(seconds=60))
    # One of the first runs longer than its like and is about to end, one waits.
    assert outlook_of(second) == Outlook(pytest.approx(5), pytest.approx(15))
    assert outlook_of(first) == Outlook(0.0, pytest.approx(5))
    assert (outlook_of(second).ahead, outlook_of(first).ahead) == ({first.pk: 2}, {})


def test_forecast_of_a_long_queue_takes_a_time_that_grows_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The header of every page of all users reads it."""
    counted: list[int] = []
    add = queue_forecast._sum
    monkeypatch.setattr(queue_forecast, "_sum", lambda *seconds: counted.append(len(seconds)) or add(*seconds))
    row = {"cluster_id": 1, "project_id": 1, "workload": "water", "cluster_enabled": True, "used_s": 0.0}
    rows = [{**row, "experiment_id": number, "count": 1} for number in range(1, 501)]
    forecasts = outlooks(rows, [])
    assert sum(counted) < 20 * len(rows)
    assert sum(forecasts[500].ahead.values()) == 499


def test_outlook_has_no_time_for_a_disabled_cluster() -> None:
    off = factories.experiment(sweep={"hosts": [1]}, repetitions=3)
    ended(factories.finished(), held_s=5)
    Cluster.objects.filter(slug="testbed").update(enabled=False)
    here = factories.experiment(cluster="local", sweep={"hosts": [1]}, repetitions=1)
    assert outlook_of(off) == Outlook()
    assert outlook_of(here).starts_in_s == 0.0


@pytest.mark.parametrize("more", [0, 4])
def test_it_asks_a_fixed_number_of_queries(django_assert_num_queries: Any, more: int) -> None:
    for _ in range(2 + more):
        factories.experiment()
    ended(factories.finished(), held_s=5)
    factories.running()
    rows, running = waiting_rows(), list(running_trials())
    with django_assert_num_queries(5):
        outlooks(rows, running)


def test_experiments_without_finished_trials_hide_no_past_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_times, "_MOST_EXPERIMENTS", 1)
    factories.experiment(sweep={"hosts": [1]}, repetitions=1)
    ended(factories.finished(), held_s=5)
    waiting = factories.experiment(sweep={"hosts": [2]}, repetitions=1).configurations.get()
    key = (waiting.experiment.cluster_id, "water", waiting.hash)
    estimate = TrialTimes.of({key}).estimate(*key, waiting.parameters)
    assert (estimate.scaled, estimate.past_trials) == (True, 1)
