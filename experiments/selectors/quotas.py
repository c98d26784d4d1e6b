"""Quotas of projects: waiting trials, machine-hours and files."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, Sum
from django.utils import timezone

from analysis.numbers import duration, grouped, plural, significant
from experiments.errors import CannotExport, FieldError, QuotaExceeded
from experiments.models import Artifact, BackgroundTask, Deleted, Project, State, Trial
from experiments.models.usage import machine_hours

GIB: Final = 1 << 30
EXPORT_CPU_S: Final = 900.0
"""Of an export in the background, where tasks run one at a time."""
_CHECKED_EVERY_S: Final = 0.5
_SMALLER: Final = "Choose fewer trials, no captures, or write it with script/manage on the server."
_LITTLE: Final = 10
"""Use below it is shown with decimals."""
_LEAST_IN_TRASH: Final = 0.01


@dataclass(frozen=True, slots=True)
class Quota:
    """One limit of a project: ``used`` of ``most`` (0: none), refused at ``field``."""

    name: str
    title: str
    unit: str
    field: str
    used: float
    most: int
    in_trash: float = 0.0
    """Part of the use that experiments in the trash have."""

    @property
    def is_used_up(self) -> bool:
        return bool(self.most) and self.used >= self.most

    @property
    def words(self) -> str:
        """Return text such as ``1 200 of 20 000 trials``."""
        used = significant(self.used, 2) if self.used < _LITTLE else grouped(round(self.used))
        return f"{used} of {grouped(self.most)} {self.unit}" if self.most else f"{used} {self.unit}, without limit"

    @property
    def trash_words(self) -> str:
        """Return the part of the use that emptying the trash frees, or ""."""
        return (
            f"{significant(self.in_trash, 2)} {self.unit} of it in the trash"
            if self.in_trash >= _LEAST_IN_TRASH
            else ""
        )


def quotas_of(projects: Collection[Project]) -> dict[int, list[Quota]]:
    """Return the limits and use of each project by key; four queries."""
    keys = [project.pk for project in projects]
    queued = Trial.objects.filter(state=State.QUEUED, experiment__project__in=keys).order_by()
    waiting = dict(queued.values_list("experiment__project").annotate(count=Count("pk")))
    hours = machine_hours(keys, timezone.now().date())
    files = Artifact.objects.filter(removed_at=None, trial__experiment__project__in=keys)
    sums = (
        files.order_by()
        .values_list("trial__experiment__project")
        .annotate(all=Sum("size_bytes"), captures=Sum("size_bytes", filter=Q(kind=Artifact.Kind.CAPTURE), default=0))
    )
    trash = Deleted.objects.filter(project__in=keys).order_by().values_list("project")
    in_trash = dict(trash.annotate(size=Sum("bytes")))  # on the disk until it is emptied
    stored_bytes = {pk: (size, captures) for pk, size, captures in sums}
    return {
        project.pk: _limits(
            project,
            waiting.get(project.pk, 0),
            hours[project.pk],
            stored_bytes.get(project.pk, (0, 0)),
            in_trash.get(project.pk, 0),
        )
        for project in projects
    }


def _limits(
    project: Project, waiting: int, hours: tuple[float, int], stored_bytes: tuple[int, int], in_trash: int
) -> list[Quota]:
    most_queued = _most(project.most_queued_trials, settings.QUOTA_QUEUED_TRIALS)
    most_disk = _most(project.most_disk_gib, settings.QUOTA_DISK_GIB)
    most_captures = _most(project.most_capture_gib, settings.QUOTA_CAPTURE_GIB)
    return [
        Quota("queued_trials", "Queued", "trials", "repetitions", waiting, most_queued),
        Quota("machine_hours", "Machine-hours in 30 days", "hours", "cluster", *hours),
        Quota("disk_gib", "Files", "GiB", "repetitions", (stored_bytes[0] + in_trash) / GIB, most_disk, in_trash / GIB),
        Quota("capture_gib", "Captures", "GiB", "capture", stored_bytes[1] / GIB, most_captures),
    ]


def problems(project: Project, *, waiting: int, adding: int, capturing: bool) -> list[FieldError]:
    """Return why ``adding`` trials to ``waiting`` ones is too much, by field."""
    used_up = f"the project {project.name} has used up its quota"
    refused = [
        FieldError(quota.field, "; ".join(filter(None, (f"{used_up}: {quota.words}", quota.trash_words))))
        for quota in quotas_of([project])[project.pk]
        if quota.is_used_up and quota.name != "queued_trials" and (capturing or quota.name != "capture_gib")
    ]
    most = _most(project.most_queued_trials, settings.QUOTA_QUEUED_TRIALS)
    if most and waiting + adding > most:
        words = (
            f"{plural(adding, 'trial')} would be more than the quota allows: project {project.name} may have at most "
            f"{plural(most, 'trial')} queued at once, and {grouped(waiting)} are. Queue fewer; superusers change quotas"
        )
        refused.append(FieldError("repetitions", words))
    if free_bytes() < 0:  # their rows take some of it, also of trials that are cancelled at once
        refused.append(FieldError("repetitions", "the disk of this installation has no room for more trials"))
    return refused


def free_bytes() -> int:
    """Return the bytes of the disk of RANKWIRE_VAR that are free above its reserve."""
    return shutil.disk_usage(settings.VAR).free - settings.DISK_RESERVE_BYTES


def export_limits(stream: IO[bytes], username: str, alive: Callable[[], object] = lambda: None) -> Callable[[], None]:
    """Return a check of a user's export to ``stream``.

    It looks, and calls ``alive``, twice a second. All exports of a user take a quarter of the free disk at most; the
    processor time is that of all threads. Raise CannotExport.
    """
    exports = BackgroundTask.objects.filter(owner__username=username, kind=BackgroundTask.Kind.EXPORT)
    stored = sum(task.file.stat().st_size for task in exports if task.file.exists())
    most, end, following = (free_bytes() + stored) // 4 - stored, time.process_time() + EXPORT_CPU_S, 0.0

    def check() -> None:
        nonlocal following
        if time.monotonic() < following:
            return
        following = time.monotonic() + _CHECKED_EVERY_S
        if time.process_time() > end:
            raise CannotExport(f"It takes more than {duration(EXPORT_CPU_S)} of CPU time. {_SMALLER}")
        if stream.tell() > most or free_bytes() < 0:
            raise CannotExport(f"Your exports may take a quarter of the free disk, and this is larger. {_SMALLER}")
        alive()

    return check


def room_for_trials(project: Project) -> int | None:
    """Return how many more trials the project may queue now; None without limit."""
    most = _most(project.most_queued_trials, settings.QUOTA_QUEUED_TRIALS)
    return max(0, most - waiting_trials(project)) if most else None


def waiting_trials(project: Project) -> int:
    return Trial.objects.filter(state=State.QUEUED, experiment__project=project).count()


@contextmanager
def within_quotas(project: Project, *, capturing: bool = True) -> Iterator[None]:
    """Queue trials in a block that holds the project's lock, within its quotas.

    Raise QuotaExceeded at the end, with nothing stored, if too many were added. Removing trials is always allowed.
    """
    with transaction.atomic():
        # No key: experiments that refer to the project can still be stored.
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        before = waiting_trials(locked)
        yield
        adding = waiting_trials(locked) - before
        refused = problems(locked, waiting=before, adding=adding, capturing=capturing) if adding > 0 else []
        if refused:
            raise QuotaExceeded(refused)


def _most(limit: int | None, default: Any) -> int:
    return int(default) if limit is None else limit
