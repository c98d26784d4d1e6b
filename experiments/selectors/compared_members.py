"""Members of a comparison: two to eight trials, configurations or experiments."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import BooleanField, ExpressionWrapper
from django.db.models.fields.json import KT

from analysis.trust_level import FLAGGED
from experiments.access import visible_experiments, visible_trials
from experiments.errors import CannotCompare
from experiments.models import Configuration, Experiment, Kind, State, Trial
from experiments.models.states import disturbed, excluded_as_disturbed

FEWEST: Final = 2
MOST: Final = 8
LABELS: Final = "ABCDEFGH"
_LONGEST_TOKEN: Final = 110

Point = tuple[Any, ...]
Names = tuple[str, ...]


@dataclass(slots=True)
class Member:
    """One side of a comparison. ``token`` in URLs: ``e:slug``, ``c:key`` or ``t:key``."""

    token: str
    label: str
    name: str
    url: str
    experiment: Experiment
    configurations: list[Configuration]
    trial: int | None = None
    counted: dict[int, list[Any]] = field(default_factory=dict)
    """Configuration key -> counted trials, with `is_disturbed`."""
    left_out: int = 0
    """Trials without a result."""
    _by_point: dict[Names, dict[Point, Configuration]] = field(default_factory=dict, repr=False)
    """Of the complete design: a comparison looks up thousands of points."""

    def at(self, names: Names, point: Point) -> Configuration | None:
        if names not in self._by_point:
            rows = {point_of(row, names): row for row in reversed(self.configurations)}  # the first row of a point
            self._by_point[names] = rows
        return self._by_point[names].get(point)

    def trials_at(self, names: Names, point: Point) -> list[Any]:
        configuration = self.at(names, point)
        return self.counted.get(configuration.pk, []) if configuration else []

    def disturbed_at(self, names: Names, point: Point) -> int:
        """Return the number of counted trials at a point that ran beside other load."""
        return sum(trial.is_disturbed for trial in self.trials_at(names, point))

    def repeats_at(self, names: Names, point: Point) -> int:
        """Return the number of counted trials at a point that repeat another counted one."""
        trials = self.trials_at(names, point)
        return len(trials) - len({trial.repetition for trial in trials})

    def flagged_at(self, names: Names, point: Point) -> int:
        """Return the number of trials at a point whose traffic is excluded."""
        return sum(trial.trust in FLAGGED for trial in self.trials_at(names, point))


def chosen_members(user: Any, tokens: Sequence[str]) -> list[Member]:
    """Return the visible members of these tokens, labelled. Raise CannotCompare."""
    wrong_number = CannotCompare(f"Choose {FEWEST} to {MOST} trials, configurations or experiments, not {len(tokens)}.")
    if not 0 < len(tokens) <= MOST:
        raise wrong_number
    slugs = [key for kind, key in map(_parsed, tokens) if kind == "e"]
    configurations = [int(key) for kind, key in map(_parsed, tokens) if kind == "c"]
    trials = [int(key) for kind, key in map(_parsed, tokens) if kind == "t"]
    visible = visible_experiments(user).select_related("cluster", "project")
    by_token: dict[str, Member] = {}
    for experiment in visible.filter(slug__in=slugs) if slugs else ():
        by_token[f"e:{experiment.slug}"] = _member(f"e:{experiment.slug}", experiment, experiment.name)
    mine = Configuration.objects.filter(experiment__in=visible_experiments(user))
    for row in mine.filter(pk__in=configurations).select_related("experiment__cluster") if configurations else ():
        by_token[f"c:{row.pk}"] = _member(f"c:{row.pk}", row.experiment, row.experiment.name, [row])
    chosen_trials = visible_trials(user).filter(pk__in=trials).select_related("experiment__cluster", "configuration")
    for trial in chosen_trials if trials else ():
        member = _member(f"t:{trial.pk}", trial.experiment, f"Trial {trial.pk}", [trial.configuration])
        member.trial, member.url = trial.pk, trial.get_absolute_url()
        by_token[member.token] = member
    missing = [token for token in tokens if token not in by_token]
    if missing:
        raise CannotCompare(f"Not found, or in projects of which you are not a member: {', '.join(missing)}.")
    if len(tokens) < FEWEST:
        raise wrong_number
    members = [by_token[token] for token in tokens]
    _load_designs(members)
    for label, member in zip(LABELS, members, strict=False):
        member.label = label
    return members


def _member(token: str, experiment: Experiment, name: str, rows: Sequence[Configuration] = ()) -> Member:
    return Member(token, "", name, experiment.get_absolute_url(), experiment, list(rows))


def _parsed(token: str) -> tuple[str, str]:
    kind, _, key = token.partition(":")
    number = kind in ("c", "t") and key.isascii() and key.isdecimal() and len(key) < 19
    slug = kind == "e" and 0 < len(key) <= _LONGEST_TOKEN and re.fullmatch("[-a-zA-Z0-9_]+", key)
    if not (number or slug):
        raise CannotCompare(f"{token[:_LONGEST_TOKEN]!r} is not one of e:slug, c:number and t:number.")
    return kind, str(int(key)) if number else key


def _load_designs(members: Sequence[Member]) -> None:
    """Load the configurations of whole experiments in one query."""
    whole = {m.experiment.pk: m for m in members if m.token.startswith("e:")}
    if whole:
        for row in Configuration.objects.filter(experiment__in=list(whole), in_design=True):
            whole[row.experiment_id].configurations.append(row)


def load_trials(members: Sequence[Member]) -> None:
    """Load the trials of all members in one query; a chosen trial represents itself."""
    keys = {c.pk for m in members for c in m.configurations}
    own_trials = Trial.objects.filter(configuration__in=keys, kind=Kind.MEASURED)
    rows = own_trials.annotate(
        is_excluded=excluded_as_disturbed(),
        is_disturbed=ExpressionWrapper(disturbed(), BooleanField()),
        transport=KT("conditions__transport"),
    ).only("pk", "configuration_id", "environment_id", "repetition", "state", "superseded", "trust")
    by_configuration: dict[int, list[Any]] = defaultdict(list)  # trials with the annotations
    for trial in rows.order_by("repetition", "attempt"):
        by_configuration[trial.configuration_id].append(trial)
    for member in members:
        for configuration in member.configurations:
            candidates = [t for t in by_configuration[configuration.pk] if member.trial in (None, t.pk)]
            current = [t for t in candidates if member.trial or not (t.superseded or t.is_excluded)]
            member.counted[configuration.pk] = [t for t in current if t.state == State.FINISHED]
            member.left_out += sum(t.state in (State.FAILED, State.ERRORED, State.LOST) for t in current)


def point_of(configuration: Configuration, names: Names) -> Point:
    return tuple(_hashable(configuration.parameters.get(name)) for name in names)


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def common_points(members: Sequence[Member]) -> tuple[Names, list[Point]]:
    """Return the swept parameters and the points that all members have, in order."""
    swept: list[str] = []
    for member in members:
        values: dict[str, set[str]] = defaultdict(set)
        for row in member.configurations:
            for name, value in row.parameters.items():
                values[name].add(repr(value))
        swept += [name for name, different in values.items() if len(different) > 1 and name not in swept]
    names = tuple(sorted(swept, key=lambda name: (name != "hosts", swept.index(name))))
    for name in names:
        held_values = [row.parameters.get(name) for member in members for row in member.configurations]
        if len({isinstance(value, bool) for value in held_values if isinstance(value, int | float)}) > 1:
            raise CannotCompare(
                f"{name} is true or false in some members and a number in others: they have no common point."
            )
    held = [{point_of(row, names) for row in member.configurations} for member in members]
    points = list(dict.fromkeys(point_of(row, names) for row in members[0].configurations))
    common = [point for point in points if all(point in points_of_member for points_of_member in held)]
    if not common:
        by = f" of {', '.join(names)}" if names else ""
        raise CannotCompare(f"No combination{by} is common to all members; compare single configurations instead.")
    try:
        return names, sorted(common)
    except TypeError:  # words and numbers cannot be sorted: design order
        return names, common
