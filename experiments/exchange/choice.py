"""Selection for a bundle by names: slugs, ``c:NUMBER`` and ``t:NUMBER``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.db.models import QuerySet

from experiments.errors import CannotExport
from experiments.exchange.bundle import ChosenTrials
from experiments.models import Experiment

MOST_EXPERIMENTS: Final = 20
MOST_NAMES: Final = 100
"""Each is a query."""
_OWNERS: Final = {"e": ("slug", "experiment"), "c": ("configurations", "configuration"), "t": ("trials", "trial")}
"""Kind of a name -> how its experiment is found, and its word."""


def select_experiments(names: Sequence[str], among: QuerySet[Experiment] | None = None) -> list[ChosenTrials]:
    """Return each named experiment once, in order. Raise CannotExport."""
    names = list(dict.fromkeys(names))
    if len(names) > MOST_NAMES:
        raise CannotExport(f"A bundle has at most {MOST_NAMES} names, not {len(names)}: name whole experiments.")
    visible = (Experiment.objects.all() if among is None else among).select_related("cluster", "owner")
    selected: dict[int, tuple[Experiment, set[int], bool]] = {}
    for name in names:
        kind, number, slug = _meant(name)
        experiment = visible.filter(**{_OWNERS[kind][0]: slug or number}).first()
        if experiment is None:
            raise CannotExport(f"There is no {_OWNERS[kind][1]} {repr(slug) if kind == 'e' else number}.")
        _, trials, whole = selected.setdefault(experiment.pk, (experiment, set(), False))
        if kind == "t":
            trials.add(number)
        elif kind == "c":
            trials.update(experiment.trials.filter(configuration=number).values_list("pk", flat=True))
        selected[experiment.pk] = (experiment, trials, whole or kind == "e")
    if len(selected) > MOST_EXPERIMENTS:
        raise CannotExport(f"A bundle holds {MOST_EXPERIMENTS} experiments at most, not {len(selected)}.")
    if not selected:
        raise CannotExport("Nothing was chosen: name an experiment, or t:NUMBER for a trial.")
    return [ChosenTrials(e, () if whole else tuple(sorted(trials))) for e, trials, whole in selected.values()]


def _meant(name: str) -> tuple[str, int, str]:
    """Return (kind, number, slug) of a name: a number of a configuration or trial."""
    kind, colon, rest = name.partition(":")
    if not colon or kind == "e":
        return "e", 0, rest if colon else name
    if kind not in _OWNERS or not (rest.isascii() and rest.isdecimal() and len(rest) < 19):
        raise CannotExport(f"{name[:100]!r} names nothing: an experiment is its slug, a trial t:NUMBER.")
    return kind, int(rest), ""
