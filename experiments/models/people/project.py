"""Projects and their members."""

from __future__ import annotations

from itertools import count
from typing import Any, ClassVar, Final

from django.apps import apps
from django.conf import settings
from django.db import models, transaction
from django.utils.text import slugify

from analysis.numbers import plural
from experiments.errors import LastMaintainer, ProjectInUse

DEFAULT_PROJECT: Final = "default"


def _quota(what: str) -> models.PositiveIntegerField[int | None, int | None]:
    return models.PositiveIntegerField(
        null=True, blank=True, help_text=f"Most {what}. Empty: the limit of the installation; 0: no limit."
    )


class OfProject:
    """A row whose changes are logged for the maintainers of its project."""

    project_id: int

    def get_additional_data(self) -> dict[str, int]:
        return {"project": self.project_id}


class Project(models.Model):
    """A group of experiments with its members."""

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)
    most_queued_trials = _quota("trials that may be queued at once")
    most_machine_hours = _quota("machine-hours in 30 days; later trials wait")
    most_disk_gib = _quota("GiB of files that are kept")
    most_capture_gib = _quota("GiB of captures among them")

    def __str__(self) -> str:
        return self.name

    def get_additional_data(self) -> dict[str, int]:
        return {"project": self.pk}

    @classmethod
    def found(cls, name: str) -> Project:
        """Create a project; its slug follows from the name, numbered if taken."""
        stem = slugify(name)[:70] or "project"
        for number in count(1):
            slug = stem if number == 1 else f"{stem}-{number}"
            project, is_new = cls.objects.get_or_create(slug=slug, defaults={"name": name})
            if is_new:
                return project
        raise AssertionError("numbers do not end")

    @property
    def contents(self) -> list[str]:
        """Return the counted experiments, deleted experiments and reports that it holds."""
        deleted = apps.get_model("experiments", "Deleted")._default_manager.filter(project=self)
        counts = {
            "experiment": self.experiments.count(),
            "report": self.reports.count(),
            "deleted experiment": deleted.count(),
        }
        return [plural(count, name) for name, count in counts.items() if count]

    def remove(self) -> None:
        """Delete it with members, invitations, webhooks and tokens. Raise ProjectInUse."""
        if self.slug == DEFAULT_PROJECT:
            raise ProjectInUse(f"{self.name} cannot be deleted: every installation has it.")
        with transaction.atomic():
            # Submissions refer to this row, and wait for the lock.
            Project.objects.select_for_update().get(pk=self.pk)
            if contents := self.contents:
                raise ProjectInUse(f"{self.name} cannot be deleted: it holds {', '.join(contents)}.")
            self.delete()

    def admit(self, user: Any, role: str) -> None:
        """Make ``user`` a member with this role; a higher role stays."""
        member, _ = self.memberships.get_or_create(user=user, defaults={"role": role})
        ranks = Membership.Role.values
        if ranks.index(role) > ranks.index(member.role):
            member.role, member.by_group = role, False
            member.save(update_fields=["role", "by_group"])

    def set_role(self, user: Any, role: str) -> None:
        """Set the role of ``user``. Raise LastMaintainer if no maintainer would remain."""
        with transaction.atomic():
            if role != Membership.Role.MAINTAINER:
                self._others_stay(user)
            self.memberships.update_or_create(user=user, defaults={"role": role, "by_group": False})

    def dismiss(self, user: Any) -> bool:
        """Remove a member; return whether there was one. Raise LastMaintainer."""
        with transaction.atomic():
            member = self._others_stay(user)
            if member is not None:
                member.delete()
        return member is not None

    def _others_stay(self, user: Any) -> Membership | None:
        """Return the membership of ``user``. Raise LastMaintainer for the only one."""
        # The lock serialises two maintainers who remove each other.
        members = list(self.memberships.select_for_update().order_by("pk"))
        membership = next((member for member in members if member.user_id == user.pk), None)
        is_maintainer = membership is not None and membership.role == Membership.Role.MAINTAINER
        if is_maintainer and not any(m.role == Membership.Role.MAINTAINER for m in members if m is not membership):
            raise LastMaintainer(f"{self.name} would have no maintainer: make another member maintainer first.")
        return membership


class Membership(OfProject, models.Model):
    """The role of a user in a project."""

    class Role(models.TextChoices):
        VIEWER = "viewer", "Viewer"
        SUBMITTER = "submitter", "Submitter"
        MAINTAINER = "maintainer", "Maintainer"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=12, choices=Role)
    by_group = models.BooleanField(default=False)
    """Assigned by a group of the identity provider, and removed when the user leaves the group."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "user"], name="one_role_per_member")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"
