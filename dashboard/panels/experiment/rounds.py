"""Rounds of an experiment with a goal: decisions, budget, trials of each round."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, log
from typing import Any, Final

from django.db.models import QuerySet
from pydantic import ValidationError

from analysis.conclusions import Answer
from analysis.conclusions.observations.scatter import LEVEL
from analysis.conclusions.sentences.key_figures import TIMES_THE_BEST, TIMES_THE_START
from analysis.conclusions.wording import percent_level
from analysis.numbers import SHARE, amount, between, duration, grouped, plural, significant
from analysis.scaling import DISTURBED
from analysis.trust_level import FLAGGED
from dashboard.labels import parameters_sentence
from dashboard.panels.experiment.excluded_trials import swept_of
from dashboard.states import CHIPS
from experiments.access import may_cancel, may_run_more
from experiments.errors import InvalidSpec
from experiments.metrics import deciding_metric, described
from experiments.models import Configuration, Experiment, Hold, Kind, Round, State, Trial
from experiments.models.states import excluded_as_disturbed
from experiments.selectors.changed_programs import last_program, replaced_file
from experiments.selectors.diagnosis import last_answer
from experiments.selectors.goals import Spent, goal_of, spent_of
from experiments.specification.goal import Budget, Goal
from experiments.specification.parameters import refusal

_MOST_POINTS: Final = 24
"""Configurations with a row of squares."""
_LISTED: Final = 3
_BAR: Final = 100
_WIDEST: Final = 10.0
"""Half-width from which on no number is shown."""
_EXCLUDED: Final = ("excluded", f"Excluded: {DISTURBED}")
"""Tone and word of the square of an excluded trial."""
TYPED: Final = "more."
"""Prefix of a refused budget in the query of the page."""
_NAMES: Final = {"time": "Time of trials", "trials": "Trials", "host_hours": "Host hours"}


@dataclass(frozen=True, slots=True)
class RoundRow:
    """One round of the list."""

    row: Round
    ran: str
    repeats: int
    """Trials that repeat a disturbed one of the round."""
    cancelled: int
    excluded: int
    """Trials of the round, repeats included, that other load excluded."""
    took_s: float | None
    words: str
    """Deciding interval in words, or ""."""
    bar: tuple[float, float, float] | None
    """Left end, estimate and right end of the interval, percent of the width."""


def rounds_context(user: Any, experiment: Experiment) -> dict[str, Any]:
    """Return the contents of the panel; empty without a goal or rounds."""
    goal = goal_of(experiment)
    made = list(experiment.rounds.all()) if goal is not None else []
    if goal is None or not made:
        return {}
    spent = spent_of(experiment)
    points = list(experiment.configurations.filter(in_design=True).order_by("position"))
    swept = swept_of(experiment)
    names = {point.hash: parameters_sentence(point.parameters, swept, experiment.workload) for point in points}
    drawn = _with_squares(points, made)
    repeats = _repeats(experiment, made)
    squares = _squares(experiment, made, [(point.pk, names[point.hash]) for point in drawn[:_MOST_POINTS]])
    excluded = Counter(number for row in squares for number, *look in row["marks"] if tuple(look) == _EXCLUDED)
    is_open, is_paused = not made[-1].outcome, experiment.hold == Hold.PAUSED
    may_go_further = not is_open and may_run_more(user, experiment)
    most = most_repetitions(experiment) if may_go_further else 0
    return {
        "goal": goal,
        "goal_words": _goal_words(goal),
        "intervals": f"{percent_level(LEVEL)} confidence intervals",
        "rounds": _rows(made, names, [point.hash for point in points], swept, experiment, repeats, excluded)[::-1],
        "trials_s": spent.time_s,
        "with_waiting_s": sum(((row.decided_at or row.started_at) - row.started_at).total_seconds() for row in made),
        "repeats_of_rounds": sum(repeats.values()),
        "is_open": is_open,
        "is_waiting": is_open and not _has_begun(experiment, made[-1]),
        "is_paused": is_paused,
        "budget": [_budget_row(name, used, most, spent.queued) for name, used, most in spent.use_of(goal.budget)],
        "squares": squares,
        "excluded_squares": excluded.total(),
        "hidden_points": max(0, len(drawn) - _MOST_POINTS),
        "may_pause": is_open and (may_run_more if is_paused else may_cancel)(user, experiment),
        "may_go_further": may_go_further and not most,
        "most_repetitions": most,
        "replaced_file": replaced_file(experiment, last_program(experiment.trials.current()))
        if may_go_further
        else None,
        "further": [] if is_open else _further(goal, spent, last_answer(experiment)),
    }


def most_repetitions(experiment: Experiment) -> int:
    """Return the most repetitions if no round can follow as all are made; else 0."""
    if experiment.is_imported or goal_of(experiment) is None:
        return 0
    last = experiment.rounds.last()
    if last is None or not last.outcome:
        return 0
    spec = experiment.spec
    if (spec.explores or spec.optimised) and last.outcome != Round.Outcome.AT_MOST:
        return 0  # rounds may choose other configurations
    counted = experiment.trials.counted().filter(configuration__in_design=True)
    counts = Counter(counted.values_list("configuration", flat=True))
    return spec.at_most if counts and min(counts.values()) >= spec.at_most else 0


def _goal_words(goal: Goal) -> str:
    if goal.optimise:
        return f"best {described(goal.optimise).label}, differences above {significant(100 * goal.matters)} % matter"
    if goal.precision is not None:
        return f"every interval within ±{significant(100 * goal.precision)} %"
    return f"the answer is conclusive; results within {significant(100 * goal.matters)} % count as equal"


def _repeats(experiment: Experiment, made: Sequence[Round]) -> Counter[int]:
    """Return how many trials of each round repeat a disturbed one, by number."""
    return _by_round(experiment.trials.current().repeats(), made)


def _by_round(trials: QuerySet[Trial], made: Sequence[Round]) -> Counter[int]:
    starts = [row.started_at for row in made]
    return Counter(_round_at(made, starts, at).number for at in trials.values_list("queued_at", flat=True))


def _has_begun(experiment: Experiment, row: Round) -> bool:
    """Return whether a trial left the queue since the round was opened."""
    return experiment.trials.filter(preparing_at__gte=row.started_at).exists()


def _round_at(made: Sequence[Round], starts: Sequence[datetime], at: datetime) -> Round:
    """Return the round in which a trial was queued."""
    return made[max(0, bisect_right(starts, at) - 1)]


def _rows(
    made: Sequence[Round],
    names: Mapping[str, str],
    hashes: Sequence[str],
    swept: Sequence[str],
    experiment: Experiment,
    repeats: Mapping[int, int],
    excluded: Mapping[int, int],
) -> list[RoundRow]:
    metric = described(deciding_metric(experiment.workload, experiment.specification))
    intervals = [_of_rates(_deciding(row.numbers), is_rate=metric.direction == "higher") for row in made]
    ends = [end for number in intervals if number for end in (number["low"], number["high"])]
    first, last = (log(min(ends)), log(max(ends))) if ends else (0.0, 0.0)

    def position_of(value: float) -> float:
        return round(2 + (_BAR - 4) * (log(value) - first) / ((last - first) or 1.0), 1)

    rows, cancelled = [], _by_round(experiment.trials.current().filter(state=State.CANCELLED), made)
    for row, number in zip(made, intervals, strict=True):
        took = None if row.decided_at is None else (row.decided_at - row.started_at).total_seconds()
        bar = (
            None
            if number is None
            else (position_of(number["low"]), position_of(number["value"]), position_of(number["high"]))
        )
        words = "" if number is None else _interval_words(number, swept, experiment.workload)
        rows.append(
            RoundRow(
                row,
                _ran(row, names, hashes),
                repeats.get(row.number, 0),
                cancelled[row.number],
                excluded.get(row.number, 0),
                took,
                words,
                bar,
            )
        )
    return rows


def _deciding(numbers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the number that keeps a goal open: the widest one, or the closest rival."""
    usable = [
        n
        for n in numbers
        if all(isinstance(n.get(key), int | float) and n[key] > 0 for key in ("low", "value", "high"))
    ]
    if confirmed := [number for number in usable if number["name"] == TIMES_THE_START]:
        return confirmed[0]
    wide = [number for number in usable if "half_width" in number]
    if wide:
        return max(wide, key=lambda number: float(number["half_width"]))
    rivals = [number for number in usable if number["unit"] == "1"]
    return min(rivals, key=lambda number: abs(log(number["value"])), default=None)


def _of_rates(number: Mapping[str, Any] | None, *, is_rate: bool) -> Mapping[str, Any] | None:
    """Return a ratio of costs to the best as one of rates: less than 1 is worse."""
    if number is None or not is_rate or number["name"] != TIMES_THE_BEST:
        return number
    ends = {name: 1 / number[end] for name, end in (("low", "high"), ("value", "value"), ("high", "low"))}
    return {**number, **ends, "name": f"{TIMES_THE_BEST} rate"}


def _interval_words(number: Mapping[str, Any], swept: Sequence[str], workload: str) -> str:
    where = parameters_sentence(number.get("where", {}), swept, workload)
    at, name = f"{where}: " if where else "", number["name"]
    if "half_width" in number:
        half = number["half_width"]
        width = f"±{significant(100 * half, 2)} %" if half < _WIDEST else f"over ±{significant(100 * _WIDEST)} %"
        return f"{at}{name} {width}"
    if name == "efficiency":
        return f"{at}{name} {amount(number['value'], SHARE)} ({between(number['low'], number['high'], SHARE)})"
    name = {TIMES_THE_BEST: f"{name} median", TIMES_THE_START: "times as good as the start"}.get(name, name)
    value, low, high = (significant(number[end], 3) for end in ("value", "low", "high"))
    return f"{at}{value} {name} ({low} to {high})"


def _ran(row: Round, names: Mapping[str, str], hashes: Sequence[str]) -> str:
    """Return the trials of a round in words: "2 hosts, 4 hosts: 4 more each"."""
    if not row.repetitions:
        # Later rounds of a search add configurations to those of round 1.
        count = row.queued if row.phase else len(hashes)
        words = f"{plural(count, 'configuration')} of the design"
        return words if row.queued else f"Decision of revision {row.version}"
    chosen = [digest for digest in hashes if digest in row.repetitions]
    counts = [row.repetitions[digest] for digest in chosen] or [0]
    low, high = min(counts), max(counts)
    more = f"{low} more each" if low == high else f"{low} to {high} more each"
    listed = ", ".join(names[digest] for digest in chosen)
    return f"{listed if 0 < len(chosen) <= _LISTED else plural(len(chosen), 'configuration')}: {more}"


def _budget_row(name: str, used: float, most: float, queued: int) -> dict[str, Any]:
    if name == "time":
        words = f"{duration(used)} of {duration(most)}"
    elif name == "trials":
        used -= queued  # they count at the limit, but nothing is used yet
        words = f"{grouped(used)} of {grouped(most)}{f', {grouped(queued)} more queued' if queued else ''}"
    else:
        words = f"{significant(used)} of {significant(most)}"
    return {"name": _NAMES[name], "words": words, "share": round(min(100.0, 100 * used / most), 1)}


def _with_squares(points: Sequence[Configuration], made: Sequence[Round]) -> list[Configuration]:
    """Return the configurations with squares: of a search, the confirmed ones."""
    confirmed = {digest for row in made if row.phase == Round.Phase.CONFIRM for digest in row.repetitions}
    return [point for point in points if not made[0].phase or point.hash in confirmed]


def _squares(experiment: Experiment, made: Sequence[Round], points: Sequence[tuple[int, str]]) -> list[dict[str, Any]]:
    """Return the trials of each configuration with the numbers of their rounds."""
    starts = [row.started_at for row in made]
    trials = experiment.trials.current().filter(kind=Kind.MEASURED, configuration__in=[pk for pk, _ in points])
    marks: dict[int, list[tuple[int, str, str]]] = {pk: [] for pk, _ in points}
    excluded = set(trials.filter(excluded_as_disturbed()).values_list("pk", flat=True))
    columns = ("pk", "configuration_id", "state", "trust", "queued_at")
    for trial, pk, state, trust, queued_at in trials.order_by("position").values_list(*columns):
        chip = CHIPS["flagged" if state == State.FINISHED and trust in FLAGGED else state]
        look = _EXCLUDED if trial in excluded else (chip.tone.value, chip.word)
        marks[pk].append((_round_at(made, starts, queued_at).number, *look))
    return [{"name": name or "All trials", "marks": marks[pk]} for pk, name in points]


def budget_of(texts: Mapping[str, str], prefix: str = "") -> Budget:
    """Return the typed budget. Raise InvalidSpec."""
    typed = {name: texts.get(f"{prefix}{name}", "").strip() for name in Budget.model_fields}
    try:
        return Budget.model_validate({name: text for name, text in typed.items() if text})
    except ValidationError as error:
        raise refusal(error) from None


def refused_limits(limits: Sequence[Mapping[str, str]], query: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the limits with their typed texts and errors.

    Errors of no field are at the first.
    """
    errors: Mapping[str, Sequence[str]] = {}
    try:
        budget_of(query, TYPED)
    except InvalidSpec as error:
        errors = error.by_path()
    rows = [
        {**row, "value": query.get(f"{TYPED}{row['name']}", ""), "errors": errors.get(row["name"], ())}
        for row in limits
    ]
    return [{**row, "errors": [*errors.get("", ()), *row["errors"]]} for row in rows[:1]] + rows[1:]


def _further(goal: Goal, spent: Spent, answer: Answer | None) -> list[dict[str, str]]:
    """Return the limits that one more round extends, with proposals.

    Those of time and trials suffice for the recommended trials of the answer.
    """
    missing = None if answer is None else answer.missing
    seconds = (missing.seconds or 0.0) if missing else 0.0
    trials = sum(more for _, more in missing.points) if missing else 0
    proposals = {
        "time": f"{max(1, round((goal.budget.time or 0) / 2 / 60), ceil(seconds / 60))} min",
        "trials": str(max(1, (goal.budget.trials or 0) // 2, trials)),
        "host_hours": significant(max(0.1, (goal.budget.host_hours or 0) / 2)),
    }
    return [
        {"name": name, "label": _NAMES[name], "value": proposals[name], "words": row["words"]}
        for name, row in ((use[0], _budget_row(*use, spent.queued)) for use in spent.use_of(goal.budget))
    ]
