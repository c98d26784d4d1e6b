"""What somebody asks to be put into a bundle, by the names that comparisons know: slugs, and ``t:NUMBER`` for a trial."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet

from experiments.errors import CannotExport
from experiments.exchange.bundle import Chosen
from experiments.models import Experiment

MOST_EXPERIMENTS = 20


def chosen_by(names: Sequence[str], among: QuerySet[Experiment] | None = None) -> list[Chosen]:
    """Return what the names stand for, each experiment once, in their order. Raise CannotExport at the first unknown one."""
    visible = (Experiment.objects.all() if among is None else among).select_related("cluster", "owner")
    wanted: dict[int, tuple[Experiment, set[int], bool]] = {}
    for name in names:
        trial = _number(name)
        slug = name.removeprefix("e:")
        found = visible.filter(trials=trial) if trial is not None else visible.filter(slug=slug)
        experiment = found.first()
        if experiment is None:
            raise CannotExport(f"There is no experiment {slug!r}." if trial is None else f"There is no trial {trial}.")
        _, trials, whole = wanted.setdefault(experiment.pk, (experiment, set(), False))
        trials |= set() if trial is None else {trial}
        wanted[experiment.pk] = (experiment, trials, whole or trial is None)
    if len(wanted) > MOST_EXPERIMENTS:
        raise CannotExport(f"A bundle holds {MOST_EXPERIMENTS} experiments at most, not {len(wanted)}.")
    return [Chosen(e, () if whole else tuple(sorted(trials))) for e, trials, whole in wanted.values()]


def _number(name: str) -> int | None:
    number = name.removeprefix("t:")
    if number == name:
        return None
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        raise CannotExport(f"{name!r} names no trial: it is t:NUMBER.")
    return int(number)
