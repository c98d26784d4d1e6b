"""A comparison in sentences: deciding metric, chosen point, counts of changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median
from typing import Any, Final

from django.utils.text import Truncator

from analysis import conclusions, numbers
from analysis.conclusions import wording
from analysis.conclusions.wording import first_up, lower_first
from analysis.statistics import MINIMUM_REPETITIONS, Comparison
from dashboard.labels import first_clause, parameter_label, parameters_sentence, value_words
from dashboard.panels.compare.work import different_work
from dashboard.states import STRENGTH
from experiments.metrics import described
from experiments.selectors.compared_members import Member, Point, point_of
from experiments.selectors.comparison import Compared, verdict_words
from experiments.selectors.differences import Difference

_ORDER: Final = ("better", "worse", "more", "less", "no clear change", "too few repetitions")
_WITHOUT: Final = {"too few repetitions": "with too few trials for a verdict"}
_MOST_DIFFERENCES: Final = 8
_BRIEF: Final = 120
"""Characters of a value among the first differences."""
_MOST_UNPAIRED: Final = 6
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Against:
    """Sentences on one member against the baseline, listed below the verdict."""

    member: Member
    sentences: Sequence[str]
    counted: str
    """Counts of changed metrics."""
    strength: tuple[str, str] = ("", "")
    """Tone and word of the strength of the first sentence."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of the page; ``verdict`` is its heading."""

    verdict: str
    against: Sequence[Against]
    strength: tuple[str, str] = ("", "")
    """Tone and word; of more than two members each line in ``against`` has its own."""
    caution: str = ""
    """Trials that other load slowed, of each side."""


@dataclass(frozen=True, slots=True)
class ExperimentAnswer:
    """Answer of one experiment of the comparison."""

    member: Member
    verdict: str
    strength: tuple[str, str]


def experiment_answers(compared: Compared, answers: Mapping[int, conclusions.Answer]) -> list[ExperimentAnswer]:
    """Return the answers of the whole experiments, if more than one has an answer."""
    whole = [member for member in compared.members if member.token.startswith("e:")]
    rows = [
        ExperimentAnswer(member, first_clause(alone.sentence), STRENGTH[alone.strength])
        for member in whole
        if (alone := answers.get(member.experiment.pk)) is not None
    ]
    return rows if len(rows) > 1 else []


def unpaired(compared: Compared) -> str:
    """Return the measured points that only some members have, in words, or ""."""
    common = set(compared.points)
    sides: dict[Point, list[str]] = {}
    for member in compared.members:
        for configuration in member.configurations:
            point = point_of(configuration, compared.names)
            if point not in common and member.counted.get(configuration.pk):
                sides.setdefault(point, []).append(member.label)
    listed = [
        f"{parameters_sentence(dict(zip(compared.names, point, strict=True)), compared.names)} ({wording.joined(labels)})"
        for point, labels in list(sides.items())[:_MOST_UNPAIRED]
    ]
    if not listed:
        return ""
    more = len(sides) - len(listed)
    names = wording.joined([*listed, *([f"{more} more"] if more else [])])
    return f"Not compared, as not all sides measured it: {names}."


def answer(compared: Compared) -> Answer:
    """State the deciding metric of the members against the baseline."""
    metric = compared.deciding
    others = [member for member in compared.members if member is not compared.baseline]
    if metric is None:
        verdict = "Nothing to compare: no deciding metric was measured on more than one side."
        return Answer(verdict, [Against(member, [], _counted(compared, member)) for member in others])
    if work := different_work(compared):
        details = [Against(m, [], _counted(compared, m, is_judged=False)) for m in others]
        return Answer(f"Different work, not comparable: {work}.", details)
    caution = _caution(compared)
    over = {member.label: _over_points(compared, member, metric) for member in others}
    if len(others) == 1:
        alone = others[0]
        verdict, sentences = _verdict(compared, alone, metric, over[alone.label])
        if len(compared.points) > 1:
            sentences.append(_chosen_point(compared, alone, metric))
        if _changed_without_link(compared, alone):
            sentences.append("One host sends no packets: a different link cannot change its trials.")
        against = [Against(alone, sentences, _counted(compared, alone))]
        return Answer(verdict, against, _strength(compared, alone), caution)
    details = [
        Against(member, [over[member.label]], _counted(compared, member), _strength(compared, member))
        for member in others
    ]
    return Answer(_of_many(compared, metric), details, caution=caution)


def _changed_without_link(compared: Compared, member: Member) -> bool:
    """Return whether only the link differs, but trials of one host changed."""
    apart = [difference.name for difference in compared.settings if difference.apart]
    if not apart or not all(name.startswith("link.") for name in apart):
        return False
    number, rows = compared.members.index(member), [(p, member.at(compared.names, p)) for p in compared.points]
    changed = [compared.changed[point][number] for point, row in rows if row is not None and row.hosts == 1]
    return any(c is not None and c.verdict in ("higher", "lower") for c in changed)


def _strength(compared: Compared, member: Member) -> tuple[str, str]:
    """Return the strength of a member against the baseline, over all common points.

    Tentative if some points do not decide, or if other load slowed half of a side's trials at one.
    """
    sides, number = (compared.baseline, member), compared.members.index(member)
    if any(side.experiment.published for side in sides):
        return STRENGTH["printed"]
    changed = [changes[number] for changes in compared.changed.values()]
    clear = sum(c is not None and c.verdict in ("higher", "lower") for c in changed)
    if not clear:
        return STRENGTH["open"]
    names = compared.names
    slowed = any(
        2 * side.disturbed_at(names, point) >= len(side.trials_at(names, point)) > 0
        for side in sides
        for point in compared.points
    )
    return STRENGTH["moderate" if slowed or clear < len(changed) else "firm"]


def _slowed(compared: Compared, member: Member) -> tuple[int, int, int]:
    """Return the slowed, all, and repeating counted trials, at all points."""
    names, points = compared.names, compared.points
    return (
        sum(member.disturbed_at(names, point) for point in points),
        sum(len(member.trials_at(names, point)) for point in points),
        sum(member.repeats_at(names, point) for point in points),
    )


def _caution(compared: Compared) -> str:
    """Return 'Other load slowed 10 of 30 trials of A at all 3 points ...', or ''."""
    slowed = {member.label: _slowed(compared, member) for member in compared.members}
    sides = [
        f"{count} of {numbers.plural(of, 'trial')} of {label}"
        + (f" ({repeats} {'repeats' if repeats == 1 else 'repeat'} another)" if repeats else "")
        for label, (count, of, repeats) in slowed.items()
        if count
    ]
    if not sides:
        return ""
    count = len(compared.points)
    over = f" at {_of_points(count, count)}" if count > 1 else ""
    uneven = (
        " The difference may come from it." if len({count / (of or 1) for count, of, _ in slowed.values()}) > 1 else ""
    )
    return f"Other load slowed {wording.joined(sides)}{over}.{uneven} Run them again on idle machines, then compare."


def _over_points(compared: Compared, member: Member, metric: str) -> str:
    """Return a sentence on all common points.

    'Against A, elapsed time of B is lower at 2 of 3 common points (−17 % to −8.8 %; 95 % intervals −19 % to −7
    %), ...'
    """
    changed = _changed(compared, member)
    if not changed:
        return f"{described(metric).label} of {member.label} was not measured at a common point."
    if len(compared.points) == 1:
        return _at_one_point(next(iter(changed.values())), metric)
    return f"{_subject(compared, member, metric)} {_joined(_at_points(changed, len(compared.points)))}."


def _changed(compared: Compared, member: Member) -> dict[str, Comparison]:
    """Return the comparison at each common point, by the words of the point."""
    number = compared.members.index(member)
    return {
        parameters_sentence(dict(zip(compared.names, point, strict=True)), compared.names): comparison
        for point, changes in compared.changed.items()
        if (comparison := changes[number]) is not None
    }


def _subject(compared: Compared, member: Member, metric: str) -> str:
    return f"Against {compared.baseline.label}, {lower_first(described(metric).label)} of {member.label}"


def _verdict(compared: Compared, member: Member, metric: str, over: str) -> tuple[str, list[str]]:
    """Return the heading, and the sentences of its clauses if they are more than two.

    'Against A, elapsed time of B is lower at 2 of 6 common points, without a clear change at 4.'
    """
    changed, count = _changed(compared, member), len(compared.points)
    clauses = _at_points(changed, count) if count > 1 else []
    if len(clauses) <= 2:
        return over, []
    verdicts = Counter(c.verdict for c in changed.values())
    clear = {word: number for word in ("lower", "higher") if (number := verdicts[word])}
    parts = [f"is {word} at {number} of {count} common points" for word, number in clear.items()]
    few = sum(c.verdict == "too few repetitions" and not _may_be_none(c) for c in changed.values())
    for words, number in (("shows no clear change", count - sum(clear.values()) - few), ("has no verdict", few)):
        if number:
            parts.append(f"{words} at {numbers.plural(number, 'point') if parts else _of_points(number, count)}")
    heading = f"{_subject(compared, member, metric)} {_joined(parts)}."
    return heading, [f"{first_up(clause)}." for clause in clauses]


def _at_one_point(c: Comparison, metric: str) -> str:
    of, that = f"{described(metric).label} of {c.group}", f"that of {c.baseline}"
    value, base, change = amount(c.median, metric), amount(c.baseline_median, metric), _changes([c])
    if c.verdict in ("higher", "lower"):
        return f"{of} is {c.verdict} than {that}: {value} against {base} ({change})."
    if c.verdict == "no clear change":
        return f"{of} shows no clear change from {that}: {value} against {base} ({change})."
    return f"{of} is {value}, {that} {base} ({change}), with {no_verdict(c)}."


def _at_points(changed: Mapping[str, Comparison], count: int) -> list[str]:
    by_verdict: dict[str, dict[str, Comparison]] = {}
    for point, comparison in changed.items():
        is_open = comparison.verdict == "too few repetitions" and _may_be_none(comparison)
        is_alone = comparison.verdict == "too few repetitions" and comparison.ratio_interval is None
        by_verdict.setdefault("open" if is_open else "alone" if is_alone else comparison.verdict, {})[point] = (
            comparison
        )
    clauses: list[str] = []
    for verdict, words in (
        ("lower", "is lower at {points} ({changes})"),
        ("higher", "is higher at {points} ({changes})"),
        ("no clear change", "shows no clear change at {points} ({changes})"),
        ("open", "shows no clear change at {points} ({changes}), with {reason}"),
        ("too few repetitions", "differs by {changes} at {points}, with {reason}"),
        ("alone", "differs by {changes} at {points}, with too few trials for an interval"),
    ):
        if changes_of_member := by_verdict.get(verdict):
            points = (
                next(iter(changes_of_member))
                if len(changes_of_member) == 1
                else _of_points(len(changes_of_member), count)
                if not clauses
                else numbers.plural(len(changes_of_member), "point")
            )
            members = [*changes_of_member.values()]
            reason = " and ".join(dict.fromkeys(map(no_verdict, members)))
            clauses.append(words.format(points=points, changes=_changes(members), reason=reason))
    if len(changed) < count:
        clauses.append(f"was not measured on both sides at {numbers.plural(count - len(changed), 'point')}")
    return clauses


def no_verdict(c: Comparison) -> str:
    """Return which number of trials is too small for a verdict."""
    if min(c.n, c.n_baseline) < MINIMUM_REPETITIONS:
        return f"no verdict below {numbers.plural(MINIMUM_REPETITIONS, 'trial')} of a side"
    return "no verdict: too few trials for a test of ranks"


def _may_be_none(c: Comparison) -> bool:
    """Return whether the interval has no change in it."""
    interval = c.ratio_interval
    return interval is not None and (interval.low or 0.0) <= 1 <= (interval.high or inf)


def _of_points(some: int, count: int) -> str:
    if some < count:
        return f"{some} of {count} common points"
    return "both common points" if count == 2 else f"all {count} common points"


def _changes(changed: Sequence[Comparison]) -> str:
    without = [c for c in changed if c.ratio_interval is None]
    if 0 < len(without) < len(changed):
        return f"{_changes([c for c in changed if c not in without])}; {_changes(without)} without an interval"
    ratios = sorted(c.ratio for c in changed if c.ratio is not None)
    if not ratios:
        return "from zero"
    intervals = [c.ratio_interval for c in changed if c.ratio_interval is not None]
    bounded = [(i.low, i.high) for i in intervals if i.low is not None and i.high is not None]
    if not bounded:
        return " to ".join(dict.fromkeys(numbers.changes(ratios[0], ratios[-1])))
    ends = min(low for low, _ in bounded), max(high for _, high in bounded)
    first, last, low, high = numbers.changes(ratios[0], ratios[-1], *ends)
    level = numbers.with_unit(numbers.significant(100 * intervals[0].level), "%")
    noun = "interval" if len(bounded) == 1 else "intervals"
    return f"{' to '.join(dict.fromkeys((first, last)))}; {level} {noun} {low} to {high}"


def _chosen_point(compared: Compared, member: Member, metric: str) -> str:
    base, other = (_median(compared, side, metric) for side in (compared.baseline, member))
    where = _at(compared)
    if base is None or other is None:
        return f"{where} it was not measured on both sides."
    change = compared.changed[compared.at][compared.members.index(member)]
    change_words = numbers.change(other / base if base else None) if change is None else _changes([change])
    return f"{where}: {amount(other, metric)} against {amount(base, metric)} ({change_words})."


def _of_many(compared: Compared, metric: str) -> str:
    medians = [(value, m) for m in compared.members if (value := _median(compared, m, metric)) is not None]
    where = f" {at[0].lower()}{at[1:]}" if (at := _at(compared)) else ""
    label, direction = lower_first(described(metric).label), described(metric).direction
    if not medians:
        return f"No {label} was measured{where}."
    ordered = sorted(medians, key=lambda pair: pair[0], reverse=direction == "higher")
    (first, one), (last, other) = ordered[0], ordered[-1]
    ends = f"{amount(first, metric)} ({one.label}) to {amount(last, metric)} ({other.label})"
    if direction == "neutral" or first == last:
        return f"Medians of {label}{where}: {ends}."
    if not any(c.verdict in ("higher", "lower") for c in compared.changed[compared.at] if c is not None):
        return f"Medians of {label}{where} show no clear difference: {ends}."
    return f"The {'highest' if direction == 'higher' else 'lowest'} median of {label}{where} is that of {one.label}: {ends}."


def _counted(compared: Compared, member: Member, *, is_judged: bool = True) -> str:
    """Return the number of compared metrics, with counts of judged changes.

    'At 2 hosts, 61 metrics were measured on both sides: 5 better, 3 worse, 53 no clear change.'
    """
    number = compared.members.index(member)
    counts = Counter(verdict_words(c, row.direction) for row in compared.rows if (c := row.against[number]) is not None)
    if not counts:
        return "No metric was measured on both sides."
    total = counts.total()
    parts = (
        f": {', '.join(f'{counts[word]} {_WITHOUT.get(word, word)}' for word in _ORDER if counts[word])}"
        if is_judged
        else ""
    )
    were = numbers.plural(total, "metric was", "metrics were")
    other = [lower_first(parameter_label(difference.name)) for difference in compared.settings if difference.apart][
        :_MOST_NAMED
    ]
    condition = f"with different {wording.joined(other)}" if other else ""
    return f"{first_up(', '.join(filter(None, (_at(compared), condition, were))))} measured on both sides{parts}."


def _median(compared: Compared, member: Member, metric: str) -> float | None:
    values = compared.series[metric][compared.at][compared.members.index(member)]
    return median(values) if values else None


def amount(value: float, metric: str) -> str:
    """Return a value of a metric with its unit: '246 s'."""
    return wording.amount(value, described(metric).unit)


def point_name(compared: Compared, point: Point) -> str:
    """Return a common point: '2' if hosts alone pair, else '2 hosts, MTU 9000 B'."""
    if compared.names == ("hosts",):
        return value_words("hosts", point[0])
    return parameters_sentence(dict(zip(compared.names, point, strict=True)), compared.names)


def point_words(member: Member, compared: Compared) -> str:
    """Return the hosts, ranks and paired parameters of a member at the point."""
    row = member.at(compared.names, compared.at)
    if row is None:
        return ""
    rest = [name for name in compared.names if name != "hosts"]
    size = f"{numbers.plural(row.hosts, 'host')}, {numbers.plural(row.ranks, 'rank')}"
    return ", ".join(p for p in (size, parameters_sentence(row.parameters, rest)) if p)


def _at(compared: Compared) -> str:
    named = dict(zip(compared.names, compared.at, strict=True))
    return f"At {parameters_sentence(named, compared.names)}" if any(v is not None for v in named.values()) else ""


def first_differences(compared: Compared, differences: Sequence[Difference]) -> dict[str, Any]:
    """Return the first differences, and the members without information."""
    differing = [difference for difference in differences if difference.apart]
    tellers = {index for difference in differences for index in difference.stated_by}
    return {
        "rows": [
            (
                parameter_label(difference.name),
                list(zip((compared.members[n].label for n in difference.stated_by), _brief(difference), strict=True)),
            )
            for difference in differing[:_MOST_DIFFERENCES]
        ],
        "more": max(0, len(differing) - _MOST_DIFFERENCES),
        "silent": [m.label for index, m in enumerate(compared.members) if differences and index not in tellers],
        "none": not differences,
    }


def _brief(difference: Difference) -> list[str]:
    """Return the values of a difference, cut if the cut ones still differ."""
    values = [setting(difference, index) for index in difference.stated_by]
    cut = [Truncator(value).chars(_BRIEF) for value in values]
    return cut if len(set(cut)) == len(set(values)) else values


def setting(difference: Difference, index: int) -> str:
    """Return the value of a setting or fact of one side in words."""
    value = difference.values[index]
    return str(value) if isinstance(value, str | list | dict) else value_words(difference.name, value)


def _joined(clauses: Sequence[str]) -> str:
    return clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])}, and {clauses[-1]}"
