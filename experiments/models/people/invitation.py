"""Invitations to a project: links with a hashed key, for one user and some days."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import models, transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from experiments.models.people.access import digest_of
from experiments.models.people.project import Membership, OfProject, Project

DAYS: Final = 7


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def open(self) -> InvitationQuerySet:
        """Return those that can be accepted, whose maker may still invite."""
        # Subqueries: with a join, two users could take one in the same moment.
        maintains = Q(memberships__project=OuterRef("project"), memberships__role=Membership.Role.MAINTAINER)
        makers = get_user_model().objects.filter(
            Q(is_superuser=True) | maintains, pk=OuterRef("invited_by"), is_active=True
        )
        return self.filter(Exists(makers), taken_at=None, expires_at__gt=timezone.now())


class Invitation(OfProject, models.Model):
    """A role in a project for the first user with the key."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=12, choices=Membership.Role)
    whom = models.CharField(max_length=120, blank=True)
    digest = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="invitations"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    taken_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    taken_at = models.DateTimeField(null=True, blank=True)

    objects = InvitationQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.role} of {self.project}, for {self.whom or 'holders of the link'}"

    @classmethod
    def issue(cls, project: Project, role: str, *, by: Any, whom: str = "", days: int = DAYS) -> tuple[Invitation, str]:
        """Create an invitation; return its row and the key of its link."""
        key = secrets.token_urlsafe(24)
        end = timezone.now() + timedelta(days=days)
        fields = {"project": project, "role": role, "whom": whom, "invited_by": by, "expires_at": end}
        return cls.objects.create(digest=digest_of(key), **fields), key

    @classmethod
    def find(cls, key: str) -> Invitation | None:
        """Return the open invitation of ``key`` with its project, or None."""
        return cls.objects.open().select_related("project", "invited_by").filter(digest=digest_of(key)).first()

    def raises_role_of(self, user: Any) -> bool:
        """Return whether the role of ``user`` in the project is lower, or missing."""
        ranks, role = (
            Membership.Role.values,
            self.project.memberships.filter(user=user.pk).values_list("role", flat=True),
        )
        return not role or ranks.index(role[0]) < ranks.index(self.role)

    def take(self, user: Any) -> bool:
        """Make ``user`` a member; return False if it expired or was accepted.

        A higher role of the user stays.
        """
        with transaction.atomic():
            now = timezone.now()
            mine = Invitation.objects.open().filter(pk=self.pk).update(taken_by=user, taken_at=now)
            if mine:
                self.project.admit(user, self.role)
        return bool(mine)
