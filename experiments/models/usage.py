"""What projects used of the machines, day by day: what turns are given by, and what the quota of a month is held against."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date, timedelta
from typing import TYPE_CHECKING, ClassVar, Final

from django.conf import settings
from django.db import models
from django.db.models import F, Q, Sum
from django.utils import timezone

from analysis.numbers import amount
from experiments.models.people.project import Project

if TYPE_CHECKING:
    from experiments.models.trial import Trial

MONTH: Final = timedelta(days=30)
HALF_LIFE_DAYS: Final = 1.0
"""What was used a day ago counts half: whoever had the machines for a night waits no week for others to catch up."""


class Usage(models.Model):
    """Seconds of machines that the trials of a project held and that ended on one day.

    Virtual hosts are one machine: the one that they are made of.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="usage")
    day = models.DateField()
    machine_s = models.FloatField(default=0.0)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "day"], name="one_usage_per_day")]

    def __str__(self) -> str:
        return f"{amount(self.machine_s, 's')} of machines by {self.project} on {self.day}"

    @classmethod
    def charge(cls, trial: Trial) -> None:
        """Count a trial that ended, inside the transaction of its end; one that never held its hosts used nothing."""
        if trial.preparing_at is None or trial.ended_at is None:
            return
        # A clock that was set back meanwhile gives nothing back.
        held_s = max((trial.ended_at - trial.preparing_at).total_seconds(), 0.0)
        today, _ = cls.objects.get_or_create(project_id=trial.experiment.project_id, day=trial.ended_at.date())
        cls.objects.filter(pk=today.pk).update(machine_s=F("machine_s") + machines_of(trial) * held_s)


def machines_of(trial: Trial) -> int:
    """How many machines a trial holds."""
    virtual = trial.cluster is not None and trial.cluster.traits.on_this_machine
    return 1 if virtual else trial.configuration.hosts


def used_lately(projects: Collection[int], active: Iterable[Trial], today: date) -> dict[int, float]:
    """Return what each of these projects used, in decayed machine-seconds, ``active`` trials included; one query."""
    used = dict.fromkeys(projects, 0.0)
    # Beyond two weeks less than a ten-thousandth is left.
    rows = Usage.objects.filter(project__in=projects, day__gt=today - timedelta(days=14))
    for project_id, day, machine_s in rows.values_list("project_id", "day", "machine_s"):
        used[project_id] += machine_s * 0.5 ** (max((today - day).days, 0) / HALF_LIFE_DAYS)
    now = timezone.now()
    for trial in active:
        if trial.experiment.project_id in used and trial.preparing_at is not None:
            # At least a second: of two that used nothing, the one that has nothing running goes first.
            held_s = max((now - trial.preparing_at).total_seconds(), 1.0)
            used[trial.experiment.project_id] += machines_of(trial) * held_s
    return used


def machine_hours(projects: Collection[int], today: date) -> dict[int, tuple[float, int]]:
    """Return the machine-hours that each of these projects used in the last 30 days, and the most it may use; one query.

    0 is without limit.
    """
    lately = Sum("usage__machine_s", filter=Q(usage__day__gt=today - MONTH), default=0.0)
    rows = (
        Project.objects.filter(pk__in=projects)
        .annotate(lately=lately)
        .values_list("pk", "lately", "most_machine_hours")
    )
    return {pk: (used_s / 3600, settings.QUOTA_MACHINE_HOURS if most is None else most) for pk, used_s, most in rows}
