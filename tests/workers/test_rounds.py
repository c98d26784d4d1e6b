"""Rounds of experiments with a goal, on simulated trials."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Count, F

from dashboard.panels.experiment.text_report import failures
from experiments.errors import InvalidSpec
from experiments.library import load_defaults
from experiments.metrics import deciding_metric
from experiments.models import DISTURBANCES, Event, Experiment, Hold, Kind, Round, State, Status, Trial, TrialResult
from experiments.models.states import BUDGET_SPENT
from experiments.selectors import progress_of
from experiments.selectors.question import question_of
from experiments.selectors.study import study_of
from experiments.specification import parse
from experiments.specification.goal import Budget
from tests.experiments import factories
from tests.workers.simulated_rounds import end_trials, kill_while_it_decides, run_to_end, submit
from workers import queue, rounds


def test_rounds_repeat_open_sizes_until_the_question_is_answered(db: None) -> None:
    experiment = submit({"until": "answered", "matters": "4 %"})

    made = run_to_end(experiment, sd=0.06)

    assert [row.outcome for row in made] == ["continue"] * (len(made) - 1) + ["answered"]
    assert len(made) > 1
    counts = dict(experiment.trials.values_list("configuration__hosts").annotate(n=Count("pk")).order_by())
    assert counts[1] < counts[4], "only sizes that may be best are repeated"
    assert sum(row.queued for row in made) == experiment.trials.count()
    assert made[-1].numbers
    assert made[1].why == made[0].reason


def test_rounds_choose_sizes_that_may_be_best(db: None) -> None:
    sweep = {"hosts": {"from": 1, "to": 4, "explore": True}}
    experiment = submit({"until": "answered", "matters": "4 %"}, sweep=sweep, where="hosts != 2")
    assert sorted(experiment.configurations.values_list("hosts", flat=True)) == [1, 3, 4]
    experiment = submit({"until": "answered", "matters": "4 %"}, sweep=sweep, name="explored")
    experiment.configurations.filter(hosts=4).delete()

    made = run_to_end(experiment)

    assert made[-1].outcome == "answered"
    added = experiment.configurations.get(hosts=4)
    assert made[0].repetitions == {}
    assert any(added.hash in row.repetitions for row in made)
    assert added.in_design
    assert experiment.plan_of(experiment.spec).configurations[-1].hash == added.hash


def test_rounds_answer_although_a_chosen_size_fails(db: None) -> None:
    experiment = submit(
        {"until": "answered", "matters": "4 %"}, sweep={"hosts": {"from": 1, "to": 64, "explore": True}}
    )
    for _ in range(40):
        while experiment.trials.filter(state=State.QUEUED).exists():
            Experiment.objects.update(hold=Hold.RELEASED)
            trial = factories.analysing()
            hosts = trial.configuration.hosts
            if hosts > 16:
                trial.fail("no memory for buffers")
            else:
                noise = 1 + 0.004 * (trial.repetition % 3)
                trial.finish(TrialResult({"all": {"elapsed_s": 100 / hosts * noise}}, {}, "good"))
        if not rounds.decide_round(experiment.pk):
            break

    last = experiment.rounds.latest("number")
    assert last.outcome == "answered"
    assert "No trial of more than 16 hosts gave a result" in last.reason
    failed = experiment.trials.filter(configuration__hosts__gt=16).values("configuration").distinct().count()
    assert 1 <= failed <= 5, "each failure halves the sizes that are tried"


def test_rounds_stop_at_the_precision(db: None) -> None:
    experiment = submit({"until": "3 %"}, repetitions={"at_least": 3, "at_most": 60})

    made = run_to_end(experiment)

    assert made[-1].outcome == "precise"
    assert all(number["half_width"] <= 0.03 for number in made[-1].numbers)
    assert any(number["half_width"] > 0.03 for number in made[0].numbers)


def test_rounds_stop_at_most(db: None) -> None:
    experiment = submit({"until": "0.5 %"}, repetitions={"at_least": 2, "at_most": 4})

    made = run_to_end(experiment, sd=0.1)

    assert made[-1].outcome == "at_most"
    assert experiment.trials.count() == 3 * 4


def test_budget_of_trials_bounds_every_round(db: None) -> None:
    experiment = submit({"until": "0.5 %", "budget": {"trials": 11}})

    made = run_to_end(experiment, sd=0.1)

    assert [row.outcome for row in made] == ["continue", "budget"]
    assert experiment.trials.count() == 11


@pytest.mark.parametrize("budget", [{"time": "10 s"}, {"host_hours": 0.001, "trials": 100}])
def test_spent_limit_cancels_waiting_trials_and_ends_the_rounds(client: Any, db: None, budget: dict[str, Any]) -> None:
    experiment = submit({"until": "answered", "budget": budget})
    trial = factories.analysing()
    Trial.objects.filter(pk=trial.pk).update(preparing_at=trial.queued_at - timedelta(seconds=20))
    trial.refresh_from_db()
    trial.finish(TrialResult({"all": {"elapsed_s": 9.0}}, {}, "good"))

    assert rounds.decide_due() == 1

    assert experiment.trials.filter(state=State.CANCELLED, message__startswith=BUDGET_SPENT).count() == 8
    assert failures(experiment) == []
    assert experiment.rounds.get().outcome == "budget"
    client.force_login(factories.person("root", is_superuser=True))
    why = client.get(experiment.get_absolute_url()).context["over_budget"]
    assert why.startswith("budget spent (")
    html = client.get(experiment.get_absolute_url()).content.decode()
    assert f"8 cancelled: {why}" in re.sub(r"[\n ]+", " ", html)
    other = experiment.trials.filter(state=State.CANCELLED).latest("pk")
    Trial.objects.filter(pk=other.pk).update(message="Cancelled before it started.")
    assert client.get(experiment.get_absolute_url()).context["over_budget"] == f"7 as {why}"
    assert len(failures(experiment)) == 1


@pytest.mark.parametrize("order", ["interleaved", "randomised"])
def test_rounds_keep_the_order_of_the_design(db: None, order: str) -> None:
    experiment = submit({"until": "0.5 %"}, repetitions={"at_least": 8, "at_most": 60}, order=order)
    end_trials(experiment, sd=0.1)
    assert rounds.decide_round(experiment.pk)

    added = (
        experiment.trials.filter(state=State.QUEUED).order_by("position").values_list("configuration__hosts", flat=True)
    )
    repetitions = [list(added[start : start + 3]) for start in range(0, len(added), 3)]
    assert all(sorted(hosts) == [1, 2, 4] for hosts in repetitions)
    alternating = [[1, 2, 4], [4, 2, 1]]
    assert (repetitions == [alternating[number % 2] for number in range(len(repetitions))]) == (order == "interleaved")


def test_open_round_keeps_the_experiment_running_and_its_end_is_one_event(db: None) -> None:
    experiment = submit({"until": "3 %"}, repetitions={"at_least": 2, "at_most": 3})
    end_trials(experiment, sd=0.1)

    assert progress_of([experiment])[experiment.pk].status == Status.RUNNING
    assert not Event.objects.filter(kind=Event.Kind.ENDED).exists()

    run_to_end(experiment, sd=0.1)

    assert progress_of([experiment])[experiment.pk].status == Status.FINISHED
    assert Event.objects.filter(kind=Event.Kind.ENDED).count() == 1


def test_paused_rounds_start_and_decide_nothing_until_they_resume(db: None) -> None:
    experiment = submit({"until": "3 %"})

    assert experiment.pause_rounds()

    with pytest.raises(AssertionError):
        factories.claimed()
    assert progress_of([experiment])[experiment.pk].status == Status.PAUSED
    Experiment.objects.update(hold=Hold.NONE)
    end_trials(experiment)
    assert experiment.pause_rounds()
    assert not rounds.decide_round(experiment.pk)
    assert queue.resume_rounds(experiment)
    assert rounds.decide_round(experiment.pk)


def test_lost_worker_keeps_rounds_paused(db: None) -> None:
    experiment = submit({"until": "3 %"})
    trial = factories.running()
    experiment.pause_rounds()

    assert trial.mark_lost("Its worker ended.") is not None

    assert Experiment.objects.get().hold == Hold.PAUSED


def test_first_trial_alone_is_refused_beside_a_goal(db: None) -> None:
    spec = parse({"name": "goal", "workload": "water", "goal": {"until": "3 %", "budget": {"trials": 20}}})

    with pytest.raises(InvalidSpec, match="starts with round 1"):
        queue.submit(spec, project=load_defaults(), first_only=True)


def test_cancelled_experiment_stops_its_rounds(db: None) -> None:
    experiment = submit({"until": "answered"})

    experiment.pause_rounds()
    assert experiment.cancel() == 9
    assert Experiment.objects.get().hold == Hold.NONE

    assert experiment.rounds.get().outcome == "stopped"
    assert not rounds.decide_due()


def test_cancelled_pause_between_rounds_ends_with_an_event(db: None) -> None:
    experiment = submit({"until": "3 %"})
    end_trials(experiment)
    experiment.pause_rounds()

    assert experiment.cancel() == 0

    assert experiment.rounds.get().outcome == "stopped"
    assert Event.objects.filter(kind=Event.Kind.ENDED).count() == 1


def test_changed_specification_keeps_rounds_paused(db: None) -> None:
    experiment = submit({"until": "3 %"})
    experiment.pause_rounds()

    experiment.revise(parse({**experiment.specification, "description": "longer"}))

    assert Experiment.objects.get().hold == Hold.PAUSED


def test_lost_and_disturbed_trials_are_not_repeated_beyond_the_budget(db: None) -> None:
    submit({"until": "3 %", "budget": {"trials": 9}})
    assert factories.running().mark_lost("Its worker ended.") is None

    disturbed = factories.analysing()
    result = TrialResult({"all": {"elapsed_s": 9.0}}, {}, "degraded", conditions={DISTURBANCES: ["other load"]})
    assert disturbed.finish(result, may_repeat=True) is None

    assert Trial.objects.count() == 9


def test_round_whose_held_trials_were_cancelled_is_decided(db: None) -> None:
    experiment = submit({"until": "answered"})
    factories.running().fail("the program ended with status 1")
    Experiment.objects.update(hold=Hold.HELD)
    experiment.trials.filter(state=State.QUEUED).cancel()

    assert rounds.decide_round(experiment.pk)

    assert experiment.rounds.get().outcome == "no_result"


def test_one_more_round_extends_the_budget(db: None) -> None:
    experiment = submit({"until": "0.5 %", "budget": {"trials": 9}})
    assert run_to_end(experiment, sd=0.1)[-1].outcome == "budget"

    with pytest.raises(InvalidSpec, match="too small"):
        rounds.one_more_round(experiment, Budget(time=60.0))
    assert rounds.one_more_round(experiment, Budget(trials=4)) == 4

    experiment.refresh_from_db()
    assert experiment.specification["goal"]["budget"] == {"trials": 13}
    assert experiment.rounds.count() == 2
    assert run_to_end(experiment, sd=0.1)[-1].outcome == "budget"
    assert experiment.trials.count() == 13


def test_one_more_round_refuses_budgets_beyond_their_limits(db: None) -> None:
    experiment = submit({"until": "0.5 %", "budget": {"trials": 9, "time": 1e308, "host_hours": 1e7}})
    run_to_end(experiment, sd=0.1)
    for more in (Budget(host_hours=1.0), Budget(time=1e308)):
        with pytest.raises(InvalidSpec, match=r"budget\."):
            rounds.one_more_round(experiment, more)


def test_used_up_quota_ends_the_rounds(db: None) -> None:
    experiment = submit({"until": "0.5 %"})
    end_trials(experiment, sd=0.1)
    submit({"until": "answered"}, name="waiting")
    experiment.project.most_queued_trials = 1
    experiment.project.save()

    assert rounds.decide_round(experiment.pk)

    assert experiment.rounds.get().outcome == "refused"
    assert not experiment.trials.filter(state=State.QUEUED).exists()


def test_rounds_take_as_many_trials_as_the_quota_allows(db: None) -> None:
    experiment = submit({"until": "0.5 %", "budget": {"trials": 13}})
    end_trials(experiment, sd=0.1)
    experiment.project.most_queued_trials = 2
    experiment.project.save()

    assert rounds.decide_round(experiment.pk)
    assert experiment.rounds.latest("number").queued == experiment.trials.filter(state=State.QUEUED).count() == 2
    assert run_to_end(experiment, sd=0.1)[-1].outcome == "budget"
    assert rounds.one_more_round(experiment, Budget(trials=5)) == 2


def test_round_without_results_stops(db: None) -> None:
    experiment = submit({"until": "answered"})
    while experiment.trials.filter(state=State.QUEUED).exists():
        Experiment.objects.update(hold=Hold.RELEASED)
        factories.running().fail("the program ended with status 1")

    assert rounds.decide_round(experiment.pk)

    assert experiment.rounds.get().outcome == "no_result"


def test_round_whose_trials_were_all_cancelled_stops(db: None) -> None:
    experiment = submit({"until": "answered"})
    experiment.trials.filter(state=State.QUEUED).cancel()

    assert rounds.decide_round(experiment.pk)

    assert experiment.rounds.get().outcome == "stopped"
    assert rounds.one_more_round(experiment, Budget(trials=9)) == 9
    assert run_to_end(experiment)[-1].outcome == "answered"


def test_failed_trials_that_run_again_are_decided(db: None) -> None:
    experiment = submit({"until": "answered"})
    while experiment.trials.filter(state=State.QUEUED).exists():
        Experiment.objects.update(hold=Hold.RELEASED)
        factories.running().fail("the program ended with status 1")
    rounds.decide_round(experiment.pk)

    assert queue.rerun_failed(experiment) == 9

    assert run_to_end(experiment)[-1].outcome == "answered"


@pytest.mark.parametrize("budget", [{"time": "10 s"}, {"host_hours": 0.001}])
@pytest.mark.parametrize("is_single", [False, True], ids=["all", "one"])
def test_failed_trials_run_again_beyond_the_time_of_the_budget(
    db: None, budget: dict[str, Any], is_single: bool
) -> None:
    experiment = submit({"until": "answered", "budget": budget})
    while experiment.trials.filter(state=State.QUEUED).exists():
        Experiment.objects.update(hold=Hold.RELEASED)
        factories.running().fail("the program ended with status 1")
    experiment.trials.update(preparing_at=F("ended_at") - timedelta(seconds=10))
    rounds.decide_round(experiment.pk)
    assert experiment.rounds.get().outcome

    if is_single:
        queue.run_again(experiment.trials.earliest("pk"))
    else:
        queue.rerun_failed(experiment)

    assert rounds.decide_due() == 0
    assert experiment.trials.filter(state=State.QUEUED).count() == (1 if is_single else 9)


@pytest.mark.parametrize("goal", ["answered", ["answered"], {"budget": "30 min"}])
def test_stored_goals_of_another_shape_are_ignored(db: None, goal: Any) -> None:
    experiment = submit({"until": "answered"})
    experiment.specification = {**experiment.specification, "goal": goal}

    assert deciding_metric(experiment.workload, experiment.specification) == "water.loop_time_s"
    assert not experiment.searches
    assert experiment.allows_another_trial()


def test_further_repetitions_are_refused_beside_a_goal(db: None) -> None:
    experiment = submit({"until": "answered"})

    with pytest.raises(InvalidSpec, match="one more round"):
        experiment.add_repetitions(1)


def test_later_rounds_spend_less_of_the_error(db: None) -> None:
    experiment = submit({"until": "answered", "matters": "5 %"})
    first = question_of(experiment, study_of(experiment))
    for _ in range(9):
        Round.objects.filter(outcome="").update(outcome="continue")
        Round.open(experiment, why="", queued=0)

    later = question_of(experiment, study_of(experiment))

    assert first.share == 0.2
    assert later.share == 0.05
    assert first.equal == pytest.approx(1.05)


@pytest.fixture
def decision_dies(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return how to end the process in a function of the decision."""

    def die(*_: Any, **__: Any) -> None:
        raise SystemExit("killed")

    def at(name: str) -> None:
        owner, _, attribute = name.rpartition(".")
        monkeypatch.setattr({"Round": Round, "Experiment": Experiment, "rounds": rounds}[owner], attribute, die)

    return at


@pytest.mark.parametrize("step", ["rounds.decide", "Round.decide", "Round.open", "Experiment.queue_repetitions"])
def test_decision_that_dies_anywhere_is_made_once_by_the_next_sweep(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, decision_dies: Callable[[str], None], step: str
) -> None:
    experiment = submit({"until": "0.5 %"})
    end_trials(experiment, sd=0.1)
    decision_dies(step)
    with pytest.raises(SystemExit):
        rounds.decide_patiently(experiment.pk)
    monkeypatch.undo()
    assert experiment.trials.count() == 9
    assert experiment.rounds.count() == 1

    assert rounds.decide_due() == 1
    assert rounds.decide_due() == 0

    assert [row.outcome for row in experiment.rounds.all()] == ["continue", ""]
    assert experiment.trials.count() == 9 + experiment.rounds.get(outcome="").queued
    assert experiment.trials.filter(kind=Kind.MEASURED).values("configuration", "repetition").distinct().count() == (
        experiment.trials.count()
    )


@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.06, 0.12, 0.3])
def test_killed_worker_loses_and_doubles_no_decision(transactional_db: None, after_s: float) -> None:
    experiment = submit({"until": "0.5 %"})
    end_trials(experiment, sd=0.1)
    kill_while_it_decides(experiment, after_s)

    rounds.decide_due()

    assert [row.outcome for row in experiment.rounds.all()] == ["continue", ""]
    assert experiment.trials.count() == 9 + experiment.rounds.get(outcome="").queued


def test_two_workers_that_decide_at_once_store_one_decision(transactional_db: None) -> None:
    experiment = submit({"until": "0.5 %"})
    end_trials(experiment, sd=0.1)

    def work(_: int) -> bool:
        try:
            return rounds.decide_round(experiment.pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        decided = list(pool.map(work, range(4)))

    assert sum(decided) == 1
    assert experiment.rounds.count() == 2
    assert experiment.trials.count() == 9 + experiment.rounds.get(outcome="").queued
