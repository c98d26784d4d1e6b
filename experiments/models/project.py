"""Projects: who may see and run what."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models


class Project(models.Model):
    """A group of experiments with its members."""

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """The role of a person in a project."""

    class Role(models.TextChoices):
        VIEWER = "viewer", "Viewer"
        SUBMITTER = "submitter", "Submitter"
        MAINTAINER = "maintainer", "Maintainer"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=12, choices=Role)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "user"], name="one_role_per_member")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"
