"""Rounds of experiments with a goal: the decision at the end of each, made once.

The worker that ends the last trial of a round decides. If it dies, or another process ended that trial, the next sweep does.
The policy reads the trials outside of a transaction; the decision and the trials of the next round are stored in one, which checks
again that the round is open and no trial changed. Two processes that decide at once store one decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Count, Max, Q
from pydantic import ValidationError

from analysis.conclusions.goals import Decision, decide, further_round
from analysis.conclusions.searching import CANDIDATES, SHARE_OF_SEARCH, confirmation, next_proposals, why_over
from analysis.numbers import plural
from experiments.common import outage
from experiments.errors import FieldError, InvalidSpec
from experiments.models import BLOCKING, UNFINISHED, Experiment, Hold, Kind, Round, State
from experiments.models.round import round_seed
from experiments.models.states import BUDGET_SPENT
from experiments.selectors import quotas
from experiments.selectors.goals import Spent, affordable, spent_of, why_no_time
from experiments.selectors.question import question_of
from experiments.selectors.searches import first_version, search_of
from experiments.selectors.study import study_of
from experiments.specification import ExperimentSpec, design, parse
from experiments.specification.goal import Budget, Goal
from experiments.specification.parameters import refusal
from workers import queue

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Ended:
    """An ended round with its decision, and the trials that it rests on."""

    outcome: Round.Outcome
    decision: Decision
    repetitions: Mapping[str, int]
    stamp: tuple[Any, ...]


def decide_due() -> int:
    """Decide every ended round, also those over budget; return how many."""
    return sum(map(decide_patiently, Round.objects.filter(outcome="").values_list("experiment", flat=True)))


def decide_patiently(experiment_id: int) -> bool:
    """Decide the open round of an experiment if it ended; no exception escapes."""
    open_round = None
    try:
        open_round = _open_round(experiment_id)
        return open_round is not None and _decide(open_round)
    except DatabaseError as error:
        outage.note(error)  # the next sweep decides
    except Exception:
        log.exception("round_undecided", experiment=experiment_id)
        if open_round is not None:
            reason = "The decision failed unexpectedly. The administrator finds the reason in the log."
            with transaction.atomic():
                open_round.decide(Round.Outcome.ERROR, reason)
                open_round.experiment.note_end()
    return False


def decide_round(experiment_id: int) -> bool:
    """Decide the open round of an experiment; return whether this call did."""
    row = _open_round(experiment_id)
    return row is not None and _decide(row)


def _open_round(experiment_id: int) -> Round | None:
    return Round.objects.filter(experiment=experiment_id, outcome="").select_related("experiment").first()


def _decide(row: Round) -> bool:
    experiment = row.experiment
    goal = experiment.spec.goal
    if goal is None:  # another process just stored a version that ends the round
        return False
    _cancel_over_budget(experiment, goal)
    if not _is_due(experiment):
        return False
    ended = _ended(row, goal)
    try:
        with quotas.within_quotas(experiment.project, capturing=experiment.spec.capture.enabled):
            return _store(row, ended)
    except InvalidSpec as error:
        refused = _Ended(
            Round.Outcome.REFUSED, Decision("continue", f"{error.reason}.", ended.decision.numbers), {}, ended.stamp
        )
        with transaction.atomic():
            return _store(row, refused)


def one_more_round(experiment: Experiment, budget: Budget, *, author: Any = None) -> int:
    """Add ``budget`` and run one more round; return its trials. Raise InvalidSpec."""
    spec, spec_version = experiment.spec, experiment.version
    if spec.goal is None:
        raise InvalidSpec([FieldError("goal", "the experiment has no goal")])
    if experiment.rounds.filter(outcome="").exists():
        raise InvalidSpec([FieldError("goal", "a round is running")])
    try:
        goal = spec.goal.model_copy(update={"budget": spec.goal.budget.extended(budget)})
    except ValidationError as error:
        raise refusal(error, "budget") from None
    question, decision = _question(experiment), _decision(experiment, goal)
    if spec.optimised and not decision.more and not question.measured():
        decision = _of_search(experiment, spec, goal)  # the confirmation failed or was cancelled
    decision = further_round(question, decision, at_least=spec.at_least, at_most=spec.at_most)
    repetitions = _repetitions(experiment, decision, goal.budget, spent_of(experiment))
    if not decision.more:
        text = f"each configuration has {spec.at_most} counted trials, the most allowed; edit repetitions.at_most first"
        if decision.outcome == "no_result":
            text = "no trial gave a result; run the failed trials again"
        raise InvalidSpec([FieldError("repetitions", text)])
    if not repetitions:
        least = plural(decision.trials, "trial") if decision.is_whole else "one more trial"
        raise InvalidSpec([FieldError("budget", f"is too small for {least}")])
    extended = {**experiment.specification, "goal": goal.model_dump(mode="json", exclude_defaults=True)}
    with quotas.within_quotas(experiment.project, capturing=spec.capture.enabled):
        experiment.wait_for_others()
        if experiment.version != spec_version or experiment.rounds.filter(outcome="").exists():
            raise InvalidSpec([FieldError("goal", "a round is running")])
        # A changed budget opens the round.
        experiment.revise(parse(extended, max_trials=settings.MAX_TRIALS), author=author)
        row = experiment.rounds.select_for_update().filter(outcome="").first() or Round.open(
            experiment, why="", queued=0
        )
        experiment.add_points(parameters for parameters, _ in decision.more)
        queued = experiment.queue_repetitions(repetitions, seed=row.seed, kind=_kind(decision))
        why = f"Requested by a user: {plural(queued, 'trial')}."
        Round.objects.filter(pk=row.pk).update(queued=queued, repetitions=repetitions, why=why, phase=decision.phase)
    _wake(experiment)
    return queued


def _is_due(experiment: Experiment) -> bool:
    # Failures hold the waiting trials, not the decision once none waits.
    return experiment.hold != Hold.PAUSED and not experiment.trials.filter(state__in=UNFINISHED).exists()


def _question(experiment: Experiment) -> Any:
    return question_of(experiment, study_of(experiment, with_traffic=False))


def _decision(experiment: Experiment, goal: Goal) -> Decision:
    spec = experiment.spec
    if spec.optimised and not _is_confirming(experiment, spec):
        return _of_search(experiment, spec, goal)
    sizes = design.allowed_sizes(spec)
    return decide(
        _question(experiment), precision=goal.precision, at_most=spec.at_most, at_least=spec.at_least, sizes=sizes
    )


def _is_confirming(experiment: Experiment, spec: ExperimentSpec) -> bool:
    """Return whether candidates of this search, as it is now, are measured again."""
    last = experiment.rounds.filter(phase=Round.Phase.CONFIRM).last()
    return last is not None and last.version >= first_version(experiment, spec)


def _of_search(experiment: Experiment, spec: ExperimentSpec, goal: Goal) -> Decision:
    """Return the next proposals, or the trials that confirm the best ones."""
    search, last = search_of(experiment, spec, first_version(experiment, spec)), experiment.rounds.count()
    proposals, spent = next_proposals(search, seed=round_seed(experiment, last + 1)), spent_of(experiment)
    fewest = confirmation(search, spec.at_least, 1)
    if proposals is not None and (within := _within_part(experiment, proposals, fewest, goal.budget, spent)):
        return replace(proposals, more=within)
    for most in range(CANDIDATES, 0, -1):
        ended = confirmation(search, spec.at_least, most)
        if _repetitions(experiment, ended, goal.budget, spent):
            break
    return replace(ended, reason=f"{why_over(search, is_affordable=proposals is None)} {ended.reason}")


def _within_part(
    experiment: Experiment, proposals: Decision, fewest: Decision, budget: Budget, spent: Spent
) -> Sequence[tuple[Mapping[str, Any], int]]:
    """Return the proposals that leave room for the confirmation of one candidate."""
    part = affordable(experiment.workload, proposals.more, budget.share(SHARE_OF_SEARCH), spent)
    within = [row for row in proposals.more if design.configuration_hash(experiment.workload, row[0]) in part]
    while within:
        both = replace(proposals, more=[*fewest.more, *within], is_whole=True)
        if _repetitions(experiment, both, budget, spent):
            break
        within.pop()
    return within


def _repetitions(experiment: Experiment, decision: Decision, budget: Budget, spent: Spent) -> dict[str, int]:
    """Return the next repetitions within a budget, and at most the project's quota.

    They are empty if the budget has no room; a project that may queue none refuses them later.
    """
    fitting = affordable(experiment.workload, decision.more, budget, spent)
    if decision.is_whole:
        return fitting if sum(fitting.values()) == decision.trials else {}
    room = quotas.room_for_trials(experiment.project)
    if room and sum(fitting.values()) > room:
        fitting = affordable(
            experiment.workload, decision.more, budget.model_copy(update={"trials": spent.trials + room}), spent
        )
    return fitting


def _ended(row: Round, goal: Goal) -> _Ended:
    """Return the decision of a round whose trials have ended, within the budget."""
    experiment = row.experiment
    stamp = _stamp(experiment)
    decision, spent = _decision(experiment, goal), spent_of(experiment)
    states = _states(row)
    if states == {State.CANCELLED} and decision.outcome in ("continue", "no_result"):
        if used := spent.reached(goal.budget):
            return _Ended(Round.Outcome.BUDGET, replace(decision, reason=f"Budget spent: {used}."), {}, stamp)
        stopped = replace(decision, reason="All trials of the round were cancelled.")
        return _Ended(Round.Outcome.STOPPED, stopped, {}, stamp)
    if decision.outcome != "continue":
        return _Ended(Round.Outcome(decision.outcome), decision, {}, stamp)
    if _is_in_vain(row, decision, states):
        nothing = Decision("no_result", "No trial of the round gave a result.", decision.numbers)
        return _Ended(Round.Outcome.NO_RESULT, nothing, {}, stamp)
    repetitions = _repetitions(experiment, decision, goal.budget, spent)
    if not repetitions:
        return _Ended(Round.Outcome.BUDGET, _without_budget(decision, goal, spent), {}, stamp)
    return _Ended(Round.Outcome.CONTINUE, decision, repetitions, stamp)


def _states(row: Round) -> set[str]:
    """Return the states of the trials that ended in a round."""
    ended = row.experiment.trials.current().filter(ended_at__gte=row.started_at)
    return set(ended.values_list("state", flat=True))


def _is_in_vain(row: Round, decision: Decision, states: set[str]) -> bool:
    """Return whether a round gave no result, and another one would repeat its trials.

    A search continues with other combinations unless a user cancelled some, and rounds that choose sizes with other sizes.
    """
    if not row.queued or State.FINISHED in states:
        return False
    if decision.phase == "search":
        return State.CANCELLED in states
    if row.phase == Round.Phase.SEARCH:  # the confirmation of earlier results follows
        return False
    finished = row.experiment.trials.current().filter(state=State.FINISHED)
    are_new_sizes = row.experiment.spec.explores and row.repetitions
    return not are_new_sizes or finished.filter(configuration__hash__in=row.repetitions).exists()


def _without_budget(decision: Decision, goal: Goal, spent: Spent) -> Decision:
    least = "it" if decision.is_whole else "one more trial"
    used = spent.reached(goal.budget) or f"the rest is too little for {least}"
    needed = f"The next round would have been {plural(decision.trials, 'trial')}."
    return replace(decision, reason=f"{decision.reason} Budget spent: {used}. {needed}", more=())


def _stamp(experiment: Experiment) -> tuple[Any, ...]:
    row = experiment.trials.aggregate(
        trials=Count("pk"),
        newest=Max("pk"),
        ended=Max("ended_at"),
        unfinished=Count("pk", filter=Q(state__in=UNFINISHED)),
    )
    return (*row.values(), experiment.version)


def _store(row: Round, ended: _Ended) -> bool:
    """Store a decision and the next round, unless the trials changed."""
    experiment = row.experiment
    experiment.wait_for_others()
    if not _is_due(experiment) or _stamp(experiment) != ended.stamp:
        return False
    if not row.decide(ended.outcome, ended.decision.reason, ended.decision.numbers):
        return False
    if ended.repetitions:
        queued = sum(ended.repetitions.values())
        decision = ended.decision
        experiment.add_points(parameters for parameters, _ in decision.more)
        following = Round.open(
            experiment, why=decision.reason, queued=queued, repetitions=ended.repetitions, phase=decision.phase
        )
        experiment.queue_repetitions(ended.repetitions, seed=following.seed, kind=_kind(decision))
        _wake(experiment)
    else:
        experiment.note_end()
    log.info("round_decided", experiment=experiment.pk, round=row.number, outcome=str(ended.outcome))
    return True


def _cancel_over_budget(experiment: Experiment, goal: Goal) -> None:
    """Cancel the waiting trials of a round that used up its time; the round then ends."""
    if experiment.hold in BLOCKING or not experiment.trials.filter(state=State.QUEUED).exists():
        return
    if (used := why_no_time(experiment, goal.budget)) and (
        cancelled := experiment.trials.filter(state=State.QUEUED).cancel(f"{BUDGET_SPENT}, {used}.")
    ):
        log.info("trials_cancelled", experiment=experiment.pk, trials=cancelled, reason=f"budget spent: {used}")


def _kind(decision: Decision) -> Kind:
    return Kind.SEARCH if decision.phase == "search" else Kind.MEASURED


def _wake(experiment: Experiment) -> None:
    if experiment.cluster_id is not None:
        queue.wake_workers(experiment.cluster_id)
