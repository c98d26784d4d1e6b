"""Machine use of projects per day, and the fair share that follows from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date, timedelta
from typing import ClassVar, Final

from django.apps import apps
from django.conf import settings
from django.db import models
from django.db.models import F, Q, Sum
from django.utils import timezone

from analysis.numbers import amount
from experiments.models.experiment import Experiment
from experiments.models.people.project import Project
from experiments.models.states import BLOCKING, State

MONTH: Final = timedelta(days=30)
HALF_LIFE_DAYS: Final = 1.0
"""Half-life of use: a project that had the machines for a night must not wait for a week."""


class Usage(models.Model):
    """Machine-seconds of a project's trials that ended on one day.

    Virtual hosts are one machine.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="usage")
    day = models.DateField()
    machine_s = models.FloatField(default=0.0)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "day"], name="one_usage_per_day")]

    def __str__(self) -> str:
        return f"{amount(self.machine_s, 's')} of machines by {self.project} on {self.day}"

    @classmethod
    def charge(cls, project_id: int, day: date, machine_s: float) -> None:
        """Add the machine-seconds of a trial that ended on ``day``."""
        usage, _ = cls.objects.get_or_create(project_id=project_id, day=day)
        cls.objects.filter(pk=usage.pk).update(machine_s=F("machine_s") + machine_s)


def recent_use(projects: Collection[int], held: Iterable[tuple[int, float]], today: date) -> dict[int, float]:
    """Return the decayed machine-seconds of each project; one query.

    ``held`` has the project and held machine-seconds of each active trial.
    """
    used = dict.fromkeys(projects, 0.0)
    # After two weeks less than 0.01 % remains.
    rows = Usage.objects.filter(project__in=projects, day__gt=today - timedelta(days=14))
    for project_id, day, machine_s in rows.values_list("project_id", "day", "machine_s"):
        used[project_id] += machine_s * 0.5 ** (max((today - day).days, 0) / HALF_LIFE_DAYS)
    for project_id, machine_s in held:
        if project_id in used:
            used[project_id] += machine_s
    return used


def machine_hours(projects: Collection[int], today: date) -> dict[int, tuple[float, int]]:
    """Return machine-hours of 30 days and their maximum (0: none); one query."""
    lately = Sum("usage__machine_s", filter=Q(usage__day__gt=today - MONTH), default=0.0)
    rows = (
        Project.objects.filter(pk__in=projects)
        .annotate(lately=lately)
        .values_list("pk", "lately", "most_machine_hours")
    )
    return {pk: (used_s / 3600, settings.QUOTA_MACHINE_HOURS if most is None else most) for pk, used_s, most in rows}


def fair_share_order(clusters: Collection[int], held: Iterable[tuple[int, float]]) -> list[int]:
    """Return the experiments (keys) that may start on these clusters, next first.

    Projects that used up their monthly machine-hours wait. ``held`` is as in `use_of_ready_projects`.
    """
    waiting = apps.get_model("experiments", "Trial")._default_manager.filter(cluster__in=clusters, state=State.QUEUED)
    experiments = Experiment.objects.filter(pk__in=waiting.values("experiment")).exclude(hold__in=BLOCKING)
    rows = list(experiments.order_by().values_list("pk", "project_id", "priority"))
    used = use_of_ready_projects({project_id for _, project_id, _ in rows}, held)
    ready = [(used[project_id], -priority, pk) for pk, project_id, priority in rows if project_id in used]
    return [pk for _, _, pk in sorted(ready)]


def use_of_ready_projects(projects: Iterable[int], held: Iterable[tuple[int, float]]) -> Mapping[int, float]:
    """Return the recent machine-seconds of projects within their monthly quota.

    ``held`` has the project and held machine-seconds of each active trial; it is read only if several projects compete.
    """
    today = timezone.now().date()
    hours = machine_hours(list(projects), today)
    ready = [pk for pk, (used, most) in hours.items() if not most or used < most]
    if len(ready) < 2:
        return dict.fromkeys(ready, 0.0)
    return recent_use(ready, held, today)
