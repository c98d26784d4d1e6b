"""Projects: who may see and run what."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models


def _quota(what: str) -> models.PositiveIntegerField[int | None, int | None]:
    return models.PositiveIntegerField(
        null=True, blank=True, help_text=f"Most {what}. Empty: as the installation says; 0: without limit."
    )


class Project(models.Model):
    """A group of experiments with its members."""

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)
    most_queued_trials = _quota("trials that may wait at once")
    most_machine_hours = _quota("hours of machines in 30 days; later trials wait")
    most_disk_gib = _quota("GiB of files that are kept")
    most_capture_gib = _quota("GiB of captures among them")

    def __str__(self) -> str:
        return self.name

    def admit(self, user: Any, role: str) -> None:
        """Make ``user`` a member with this role; a greater one that there is stays."""
        member, _ = self.memberships.get_or_create(user=user, defaults={"role": role})
        ranks = Membership.Role.values
        if ranks.index(role) > ranks.index(member.role):
            member.role, member.by_group = role, False
            member.save(update_fields=["role", "by_group"])


class Membership(models.Model):
    """The role of a person in a project."""

    class Role(models.TextChoices):
        VIEWER = "viewer", "Viewer"
        SUBMITTER = "submitter", "Submitter"
        MAINTAINER = "maintainer", "Maintainer"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=12, choices=Role)
    by_group = models.BooleanField(default=False)
    """Given by a group of the identity provider, and taken away when its owner leaves that."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "user"], name="one_role_per_member")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"
