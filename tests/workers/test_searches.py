"""Searches for the best settings, on simulated trials of HPL."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from analysis.conclusions.searching import PATIENCE
from experiments.errors import InvalidSpec
from experiments.models import Experiment, Kind, State, TrialResult
from experiments.revision import preview_of
from experiments.selectors.diagnosis import diagnosis_of
from experiments.selectors.searches import searched_of
from experiments.specification import design, parse
from experiments.specification.goal import Budget
from tests.experiments import factories
from tests.workers.simulated_rounds import kill_while_it_decides
from tests.workers.simulated_searches import SPEC, end_trials, fail_trials, gflops, run_to_end, submit
from workers import rounds


def test_search_proposes_and_new_trials_confirm_its_best_settings(db: None) -> None:
    experiment = submit()

    made = run_to_end(experiment)

    phases = [row.phase for row in made]
    assert phases == sorted(phases, reverse=True), "confirmation follows the search"
    assert made[-1].outcome == "answered"
    answer = diagnosis_of(experiment).answer
    assert (answer.question, answer.strength) == ("best settings", "firm")
    gains = [figure for figure in answer.figures if figure.name == "times the start"]
    best = gains[0]
    truth = gflops(best.where) / gflops(design.start_of(experiment.spec))
    assert (best.low or 0) <= truth <= (best.high or 0)
    assert gflops(best.where) > 0.97 * gflops({"nb": 192, "p": 2})
    searched = set(experiment.trials.filter(kind=Kind.SEARCH).values_list("configuration", flat=True))
    assert len(searched) == experiment.trials.filter(kind=Kind.SEARCH).count(), "no combination is searched twice"


def test_search_without_differences_claims_none(db: None) -> None:
    experiment = submit(goal={**SPEC["goal"], "matters": "5 %"})

    run_to_end(experiment, gain=0.0, sd=0.01)

    answer = diagnosis_of(experiment).answer
    assert not any(f.low is not None and f.low > 1 for f in answer.figures if f.name == "times the start")
    assert "as good" in answer.sentence


def test_search_avoids_failed_combinations(db: None) -> None:
    experiment = submit()
    Experiment.objects.update(hold="released")
    factories.analysing().finish(TrialResult({"all": {"hpl.gflops": 300.0}}, {}, "good"))
    trial = factories.running()
    trial.fail("out of memory")

    made = run_to_end(experiment)

    assert made[-1].outcome == "answered"
    assert experiment.trials.filter(configuration=trial.configuration_id).count() == 1


def test_search_without_results_of_its_start_claims_nothing(db: None) -> None:
    experiment = submit()
    for _ in range(60):
        while experiment.trials.filter(state=State.QUEUED).exists():
            Experiment.objects.update(hold="released")
            trial = factories.analysing()
            parameters = trial.configuration.parameters
            if (parameters["nb"], parameters["p"]) == (80, 1):
                trial.fail("out of memory")
            else:
                trial.finish(TrialResult({"all": {"hpl.gflops": gflops(parameters)}}, {}, "good"))
        if not rounds.decide_round(experiment.pk):
            break

    assert experiment.rounds.last().outcome == "no_result"
    assert diagnosis_of(experiment).answer.strength == "open"


def test_round_of_failed_proposals_does_not_end_the_search(db: None) -> None:
    experiment = submit()
    end_trials(experiment)
    rounds.decide_round(experiment.pk)
    fail_trials(experiment)

    made = run_to_end(experiment)

    assert [row.outcome for row in made[:2]] == ["continue", "continue"]
    assert made[-1].outcome == "answered"


def test_edited_search_searches_again(db: None) -> None:
    experiment = submit(sweep={**SPEC["sweep"], "p": [1, 4]})
    run_to_end(experiment)
    before = experiment.rounds.count()
    described = {**experiment.specification, "description": "longer"}
    experiment.revise(parse(described))
    assert [row.phase for row in run_to_end(experiment)[before:]] == ["search"], "its answer stays"

    experiment.revise(parse({**described, "sweep": SPEC["sweep"]}))

    assert {row.phase for row in run_to_end(experiment)[before + 1 :]} == {"search", "confirm"}
    best = diagnosis_of(experiment).answer.figure("times the start")
    assert best is not None
    assert best.where["p"] == 2, "the added value is better"


def test_same_results_give_the_same_proposals(db: None) -> None:
    hashes = []
    for _ in range(2):
        experiment = submit()
        end_trials(experiment)
        rounds.decide_round(experiment.pk)
        hashes.append(sorted(experiment.rounds.get(number=2).repetitions))
        experiment.trials.all().delete()
        experiment.delete()

    assert hashes[0] == hashes[1]


def test_budget_leaves_trials_for_the_confirmation(db: None) -> None:
    experiment = submit(goal={"optimise": "hpl.gflops", "budget": {"trials": 40}})

    made = run_to_end(experiment)

    assert experiment.trials.count() <= 40
    assert experiment.trials.filter(kind=Kind.SEARCH).count() <= 26
    assert "confirm" in {row.phase for row in made}


def test_small_budget_measures_the_start_first(db: None) -> None:
    experiment = submit(goal={"optimise": "hpl.gflops", "budget": {"trials": 13}}, repetitions=3)

    run_to_end(experiment)

    again = experiment.trials.filter(kind=Kind.MEASURED).values_list("configuration__parameters", flat=True)
    counts = Counter((parameters["nb"], parameters["p"]) for parameters in again)
    assert len(counts) == 2
    assert counts[80, 1] == 3
    assert counts.total() == 6


@pytest.mark.parametrize(("trials", "candidates"), [(20, 1), (26, 2)])
def test_small_budget_confirms_fewer_candidates_at_least_so_often(db: None, trials: int, candidates: int) -> None:
    experiment = submit(goal={"optimise": "hpl.gflops", "budget": {"trials": trials}}, repetitions=3)

    made = run_to_end(experiment)

    first = next(row for row in made if row.phase == "confirm")
    assert sorted(first.repetitions.values()) == [3] * (1 + candidates)
    assert experiment.trials.count() <= trials


def test_budget_without_room_for_a_confirmation_starts_none(db: None) -> None:
    experiment = submit(goal={"optimise": "hpl.gflops", "budget": {"time": "8 min"}}, repetitions=3)
    end_trials(experiment)
    experiment.trials.update(preparing_at=F("ended_at") - timedelta(minutes=1))

    assert rounds.decide_round(experiment.pk)

    assert experiment.rounds.get().outcome == "budget"
    assert not experiment.trials.filter(kind=Kind.MEASURED).exists()
    with pytest.raises(InvalidSpec, match="too small for 6 trials"):
        rounds.one_more_round(experiment, Budget(time=60.0))
    assert rounds.one_more_round(experiment, Budget(time=330.0)) == 6


def test_search_continues_after_a_first_round_without_results(db: None) -> None:
    experiment = submit()
    fail_trials(experiment)
    rounds.decide_round(experiment.pk)

    made = run_to_end(experiment)

    assert made[0].outcome == "continue"
    assert made[-1].outcome == "answered"


def test_search_without_any_result_ends_after_its_patience(db: None) -> None:
    experiment = submit()
    for _ in range(20):
        fail_trials(experiment)
        if not rounds.decide_round(experiment.pk):
            break

    assert experiment.rounds.last().outcome == "no_result"
    assert experiment.trials.count() == 7 + 6 + 6


def test_cancelled_trials_are_no_failures_of_a_search(db: None) -> None:
    experiment = submit()
    start = experiment.trials.get(configuration__parameters__nb=80, configuration__parameters__p=1)
    start.cancel()
    end_trials(experiment)

    rounds.decide_round(experiment.pk)

    assert len(searched_of(experiment, experiment.spec).results) == 6
    following = experiment.rounds.get(outcome="")
    assert (following.phase, following.queued) == ("search", 7)
    assert start.configuration.hash in following.repetitions, "its start runs again"
    experiment.trials.filter(state=State.QUEUED).cancel()
    assert rounds.decide_round(experiment.pk)
    assert experiment.rounds.last().outcome == "stopped"
    assert rounds.one_more_round(experiment, Budget(trials=10)) == 7


def test_cancelled_confirmation_runs_in_one_more_round(db: None) -> None:
    experiment = submit()
    while experiment.rounds.last().phase != "confirm":
        end_trials(experiment)
        rounds.decide_round(experiment.pk)
    experiment.trials.filter(state=State.QUEUED).cancel()
    assert rounds.decide_round(experiment.pk)
    assert experiment.rounds.last().outcome == "stopped"

    assert rounds.one_more_round(experiment, Budget(trials=20)) > 0

    assert run_to_end(experiment)[-1].outcome == "answered"


def test_edited_search_has_new_patience(db: None) -> None:
    experiment = submit(sweep={**SPEC["sweep"], "p": [1, 4]})
    run_to_end(experiment)
    before = experiment.trials.filter(kind=Kind.SEARCH).count()
    budget = {"trials": 200}

    experiment.revise(
        parse({**experiment.specification, "sweep": SPEC["sweep"], "goal": {**SPEC["goal"], "budget": budget}})
    )
    run_to_end(experiment)

    new = experiment.trials.filter(kind=Kind.SEARCH).count() - before
    assert new >= min(PATIENCE, 48 - before)


def test_changed_budget_keeps_the_combinations_of_the_search(db: None) -> None:
    experiment = submit()
    end_trials(experiment)
    rounds.decide_round(experiment.pk)
    before = experiment.configurations.filter(in_design=True).count()

    experiment.revise(parse({**experiment.specification, "goal": {**SPEC["goal"], "budget": {"trials": 95}}}))

    assert experiment.configurations.filter(in_design=True).count() == before
    assert experiment.trials.filter(state=State.QUEUED, kind=Kind.SEARCH).count() == 6


@pytest.mark.parametrize("goal", [{**SPEC["goal"], "matters": "3 %"}, None])
def test_preview_counts_waiting_trials_of_the_confirmation(db: None, goal: dict[str, Any] | None) -> None:
    experiment = submit()
    while experiment.rounds.last().phase != "confirm":
        end_trials(experiment)
        rounds.decide_round(experiment.pk)
    changed = {**experiment.specification, "goal": goal}
    spec = parse(changed if goal else {name: value for name, value in changed.items() if name != "goal"})

    planned = preview_of(experiment, spec, experiment.plan_of(spec))

    assert planned.queued == experiment.revise(spec) > 0
    assert planned.queued == experiment.trials.filter(state=State.QUEUED).count()


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"goal": {**SPEC["goal"], "until": "answered"}}, "goal"),
        ({"goal": {**SPEC["goal"], "optimise": "hpl.speed"}}, "goal.optimise"),
        ({"deciding": "elapsed_s"}, "deciding"),
        ({"warmups": 1}, "goal.optimise"),
        ({"sweep": {"nb": [16, 32], "p": [1, 2]}, "zip": [["nb", "p"]]}, "sweep"),
        ({"where": "nb > 100"}, "where"),
        ({"sweep": {"nb": [16]}}, "sweep"),
        ({"goal": {"optimise": "hpl.gflops", "budget": {"trials": 12}}}, "goal.budget.trials"),
        ({"sweep": {"nb": [16, 32], "p": [3, 5]}}, "sweep.p"),
    ],
)
def test_impossible_searches_are_refused_at_their_field(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        parse({**SPEC, **changes})
    assert list(refused.value.by_path()) == [path]


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.15, 0.3, 0.6])
def test_killed_worker_loses_and_doubles_no_proposals(transactional_db: None, after_s: float) -> None:
    experiment = submit()
    end_trials(experiment)
    kill_while_it_decides(experiment, after_s)

    rounds.decide_due()

    assert [row.outcome for row in experiment.rounds.all()] == ["continue", ""]
    assert experiment.trials.filter(state=State.QUEUED).count() == experiment.rounds.get(outcome="").queued == 6
