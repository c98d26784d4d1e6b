"""Rounds of experiments with a goal: the decision at the end of each, made once.

The worker that ends the last trial of a round decides. If it dies, or another process ended that trial, the next sweep does.
The policy reads the trials outside of a transaction; the decision and the trials of the next round are stored in one, which checks
again that the round is open and no trial changed. Two processes that decide at once store one decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog
from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Count, Max, Q
from pydantic import ValidationError

from analysis.conclusions.goals import Decision, decide, further_round
from analysis.conclusions.searching import SHARE_OF_SEARCH, confirmation, next_proposals, why_over
from analysis.numbers import plural
from experiments.common import outage
from experiments.errors import FieldError, InvalidSpec
from experiments.models import BLOCKING, UNFINISHED, Experiment, Hold, Kind, Round, State
from experiments.models.round import round_seed
from experiments.revision import changed_fields
from experiments.selectors import quotas
from experiments.selectors.goals import Spent, affordable, spent_of
from experiments.selectors.question import question_of
from experiments.selectors.searches import search_of
from experiments.selectors.study import study_of
from experiments.specification import ExperimentSpec, design, parse
from experiments.specification.goal import Budget, Goal
from experiments.specification.parameters import refusal
from workers import queue

log = structlog.get_logger()

_SAME_SEARCH: Final = ("name", "description", "tags", "repetitions", "goal.budget", "goal.matters", "order", "retries")
"""Fields that a user may change without another search."""


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
        open_round = Round.objects.filter(experiment=experiment_id, outcome="").select_related("experiment").first()
        return decide_round(experiment_id)
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
    row = Round.objects.filter(experiment=experiment_id, outcome="").select_related("experiment").first()
    goal = None if row is None else row.experiment.spec.goal
    if row is None or goal is None:  # without a goal: another process just stored a version that ends the round
        return False
    experiment = row.experiment
    _cancel_over_budget(experiment, goal)
    if not _is_due(experiment):
        return False
    ended = _ended(row, goal)
    try:
        with quotas.within_quotas(experiment.project, capturing=experiment.spec.capture.enabled):
            return _store(row, ended)
    except InvalidSpec as error:
        refused = _Ended(
            Round.Outcome.REFUSED, Decision("continue", str(error), ended.decision.numbers), {}, ended.stamp
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
    decision = further_round(_question(experiment), _decision(experiment, goal), spec.at_most)
    repetitions = affordable(experiment.workload, decision.more, goal.budget, spent_of(experiment))
    if not decision.more:
        text = f"every configuration has {spec.at_most} repetitions; edit repetitions.at_most first"
        raise InvalidSpec([FieldError("repetitions", text)])
    if not repetitions:
        raise InvalidSpec([FieldError("budget", "is too small for one more trial")])
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
    if last is None:
        return False
    then = experiment.versions.get(number=last.version).specification
    changes = changed_fields(then, spec.to_dict())
    return all(path.startswith(_SAME_SEARCH) for path, *_ in changes)


def _of_search(experiment: Experiment, spec: ExperimentSpec, goal: Goal) -> Decision:
    """Return the next proposals, or the trials that confirm the best ones."""
    search, last = search_of(experiment, spec), experiment.rounds.count()
    proposals = next_proposals(search, seed=round_seed(experiment, last + 1))
    part, spent = goal.budget.share(SHARE_OF_SEARCH), spent_of(experiment)
    fitting = affordable(experiment.workload, proposals.more, part, spent) if proposals is not None else {}
    if proposals is not None and fitting:
        within = [row for row in proposals.more if design.configuration_hash(experiment.workload, row[0]) in fitting]
        return replace(proposals, more=within)
    ended = confirmation(search, spec.at_least)
    return replace(ended, reason=f"{why_over(search, is_affordable=proposals is None)} {ended.reason}")


def _ended(row: Round, goal: Goal) -> _Ended:
    """Return the decision of a round whose trials have ended, within the budget."""
    experiment = row.experiment
    stamp = _stamp(experiment)
    decision, spent = _decision(experiment, goal), spent_of(experiment)
    if decision.outcome != "continue":
        return _Ended(Round.Outcome(decision.outcome), decision, {}, stamp)
    if decision.phase != "search" and _is_in_vain(row):
        nothing = Decision("no_result", "No trial of the round gave a result.", decision.numbers)
        return _Ended(Round.Outcome.NO_RESULT, nothing, {}, stamp)
    repetitions = affordable(experiment.workload, decision.more, goal.budget, spent)
    if not repetitions:
        return _Ended(Round.Outcome.BUDGET, _without_budget(decision, goal, spent), {}, stamp)
    return _Ended(Round.Outcome.CONTINUE, decision, repetitions, stamp)


def _is_in_vain(row: Round) -> bool:
    """Return whether a round gave no result, and another one would repeat its trials.

    A search continues with other combinations, and rounds that choose sizes with other sizes.
    """
    finished = row.experiment.trials.current().filter(state=State.FINISHED)
    if not row.queued or row.phase == Round.Phase.SEARCH or finished.filter(ended_at__gte=row.started_at).exists():
        return False
    are_new_sizes = row.experiment.spec.explores and row.repetitions
    return not are_new_sizes or finished.filter(configuration__hash__in=row.repetitions).exists()


def _without_budget(decision: Decision, goal: Goal, spent: Spent) -> Decision:
    used = spent.reached(goal.budget) or "The rest is too little for one more trial"
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
    limits = goal.budget.model_copy(update={"trials": None})
    if (used := spent_of(experiment).reached(limits)) and (
        cancelled := experiment.trials.filter(state=State.QUEUED).cancel()
    ):
        log.info("trials_cancelled", experiment=experiment.pk, trials=cancelled, reason=f"budget spent: {used}")


def _kind(decision: Decision) -> Kind:
    return Kind.SEARCH if decision.phase == "search" else Kind.MEASURED


def _wake(experiment: Experiment) -> None:
    if experiment.cluster_id is not None:
        queue.wake_workers(experiment.cluster_id)
