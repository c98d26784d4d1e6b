"""API tokens, stored hashed: what they may do, where, and until when."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import models
from django.utils import timezone

from experiments.models.project import Membership, Project

LONGEST_DAYS: Final = 365


class ApiToken(models.Model):
    """A person's key to the REST interface. The key itself is shown once and never stored.

    It never does more than its owner may: `scope` is the most of a role that it brings along, `project` the only one that
    it reaches (None: all of its owner's), and after `expires_at` (None: never) it is worth nothing.
    """

    class Scope(models.TextChoices):
        READ = "read", "Read"
        SUBMIT = "submit", "Submit"
        MAINTAIN = "maintain", "Maintain"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    scope = models.CharField(max_length=8, choices=Scope, default=Scope.MAINTAIN)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, blank=True, related_name="api_tokens")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @classmethod
    def issue(
        cls,
        user: Any,
        name: str,
        *,
        scope: str = Scope.MAINTAIN,
        project: Project | None = None,
        days: int | None = None,
    ) -> tuple[ApiToken, str]:
        """Make a token that lasts ``days`` (None: until it is ended); return its row and the key, which nobody can read again."""
        key = f"rw_{secrets.token_urlsafe(32)}"
        end = None if days is None else timezone.now() + timedelta(days=days)
        limits = {"scope": scope, "project": project, "expires_at": end}
        return cls.objects.create(user=user, name=name, prefix=key[:8], digest=digest_of(key), **limits), key

    @classmethod
    def find(cls, key: str) -> ApiToken | None:
        """Return the token of ``key`` with its user, or None; the last use is noted to the day."""
        now = timezone.now()
        lasting = models.Q(expires_at=None) | models.Q(expires_at__gt=now)
        tokens = cls.objects.select_related("user").filter(lasting, digest=digest_of(key), user__is_active=True)
        token = tokens.first()
        if token is not None and (token.last_used_at is None or token.last_used_at.date() < now.date()):
            cls.objects.filter(pk=token.pk).update(last_used_at=now)
        return token

    @property
    def is_over(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()

    @property
    def most_role(self) -> str:
        """The role that it brings along at most."""
        roles = Membership.Role
        of_scope = {self.Scope.READ: roles.VIEWER, self.Scope.SUBMIT: roles.SUBMITTER}
        return of_scope.get(self.Scope(self.scope), roles.MAINTAINER)


class TokensEndWithThePassword:
    """A password validator that refuses nothing: Django tells it of every change of a password, wherever it was made, and not
    of one that is only stored in a newer form.
    """

    def validate(self, password: str, user: Any = None) -> None:
        """Nothing is asked of the password itself."""

    def password_changed(self, password: str, user: Any = None) -> None:
        """Who changes a password because it is known to others does not want to leave them the tokens."""
        if user is not None:
            ApiToken.objects.filter(user=user).delete()

    def get_help_text(self) -> str:
        return "A changed password ends all API tokens of its owner."


def digest_of(key: str) -> str:
    """What is stored of a key. It has 256 random bits, so one round of SHA-256 is as strong as a slow password hash."""
    return hashlib.sha256(key.encode()).hexdigest()
