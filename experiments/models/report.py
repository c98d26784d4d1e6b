"""Reports: Markdown pages with parts of experiments, in versions."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.conf import settings
from django.db import models, transaction
from django.urls import reverse
from django.utils import timezone

from experiments.errors import ReportChanged
from experiments.models.people.event import Event
from experiments.models.people.project import OfProject, Project

LONGEST_TITLE: Final = 200
LONGEST_TEXT: Final = 200_000


class Report(OfProject, models.Model):
    """A page of a project; ``version`` is the number of the newest."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="reports")
    title = models.CharField(max_length=LONGEST_TITLE)
    version = models.PositiveIntegerField(default=1)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="reports"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        ordering: ClassVar = ["-changed_at", "-pk"]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("report", args=[self.pk])

    @classmethod
    def write(
        cls, project: Project, title: str, text: str, frozen: dict[str, Any], *, by: Any, note: str = ""
    ) -> Report:
        """Store a report with its first version; ``frozen`` is the data of frozen parts."""
        with transaction.atomic():
            report = cls.objects.create(project=project, title=title, owner=by)
            report.versions.create(number=1, title=title, text=text, frozen=frozen, author=by, note=note)
            report._note_version(1, by)
        return report

    def revise(
        self, title: str, text: str, frozen: dict[str, Any], *, by: Any, base: int, note: str = ""
    ) -> ReportVersion:
        """Store a version based on version ``base``. Raise ReportChanged for a newer one."""
        with transaction.atomic():
            # The lock serialises concurrent saves: the second sees the version of the first.
            current = Report.objects.select_for_update().get(pk=self.pk)
            if current.version != base:
                raise ReportChanged(
                    f"Version {current.version} was saved in the meantime; this text is based on version {base}."
                )
            version = current.versions.create(
                number=base + 1, title=title, text=text, frozen=frozen, author=by, note=note
            )
            current.title, current.version, current.changed_at = title, version.number, version.created_at
            current.save(update_fields=["title", "version", "changed_at"])
            current._note_version(version.number, by)
        self.title, self.version, self.changed_at = current.title, current.version, current.changed_at
        return version

    def restore(self, number: int, *, by: Any) -> ReportVersion:
        """Make an earlier version the newest, with its frozen data."""
        earlier = self.versions.get(number=number)
        note = f"Version {number} restored"
        return self.revise(earlier.title, earlier.text, earlier.frozen, by=by, base=self.version, note=note)

    def _note_version(self, number: int, author: Any) -> None:
        data = {"version": number, "by": author.get_username() if author is not None else ""}
        Event.note(Event.Kind.REPORT, f"{self.pk}:{number}", report=self, data=data)

    @property
    def current(self) -> ReportVersion:
        return self.versions.select_related("author").get(number=self.version)


class ReportVersion(models.Model):
    """A saved version of a report. It never changes."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=LONGEST_TITLE)
    text = models.TextField()
    frozen: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(
        default=dict, blank=True, help_text="Data of frozen parts, by part, each with the moment it was taken."
    )
    note = models.CharField(max_length=LONGEST_TITLE, blank=True, help_text="What was changed, in the author's words.")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["report", "number"], name="one_report_version_per_number")
        ]

    def __str__(self) -> str:
        return f"version {self.number} of {self.title}"
