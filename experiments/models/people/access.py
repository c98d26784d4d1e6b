"""API tokens, and idempotency keys of requests."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar, Final

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models.functions import Now
from django.utils import timezone

from experiments.errors import IdempotencyConflict
from experiments.models.ordered_json import OrderedJSONField
from experiments.models.people.project import Membership, Project

LONGEST_DAYS: Final = 365


class ApiToken(models.Model):
    """A user's key to REST, stored as a hash.

    It never exceeds its user's rights: `scope` limits the role, `project` the project (None: all), `expires_at` the time (None:
    unlimited).
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
        """Create a token for ``days`` (None: unlimited); return its row and its key."""
        key = f"rw_{secrets.token_urlsafe(32)}"
        end = None if days is None else timezone.now() + timedelta(days=days)
        limits = {"scope": scope, "project": project, "expires_at": end}
        return cls.objects.create(user=user, name=name, prefix=key[:8], digest=digest_of(key), **limits), key

    @classmethod
    def find(cls, key: str) -> ApiToken | None:
        """Return the valid token of ``key`` with its user, or None; record the day of use."""
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
        """Return the highest role that the scope allows."""
        roles = Membership.Role
        of_scope = {self.Scope.READ: roles.VIEWER, self.Scope.SUBMIT: roles.SUBMITTER}
        return of_scope.get(self.Scope(self.scope), roles.MAINTAINER)


class TokensEndWithThePassword:
    """A password validator that deletes the tokens of a user whose password changes.

    Django does not call it when it only stores a password with a newer hash.
    """

    def validate(self, password: str, user: Any = None) -> None:
        """Accept every password."""

    def password_changed(self, password: str, user: Any = None) -> None:
        if user is not None:
            ApiToken.objects.filter(user=user).delete()

    def get_help_text(self) -> str:
        return "A changed password ends all API tokens of its owner."


class IdempotencyKey(models.Model):
    """A request by its idempotency key, with the stored answer."""

    KEPT: ClassVar = timedelta(days=1)

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)
    request = models.CharField(max_length=64, help_text="Digest of the request.")
    answer: models.JSONField[dict[str, Any], dict[str, Any]] = OrderedJSONField()
    asked_at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["owner", "digest"], name="one_answer_of_each_key")]

    def __str__(self) -> str:
        return self.digest

    @classmethod
    def once(cls, owner: Any, key: str, request: str, act: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], bool]:
        """Act once per key; return the answer, and whether it was stored before.

        One transaction: if ``act`` raises, the key is free again; a concurrent request waits. ``request`` describes the request. Raise
        IdempotencyConflict if the key came with another request.
        """
        digest, request_digest = digest_of(key), digest_of(request)
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 14))", [f"{owner.pk}:{digest}"])
            earlier = cls.objects.filter(owner=owner.pk, digest=digest).first()
            if earlier is None:
                answer = act()
                cls.objects.create(owner_id=owner.pk, digest=digest, request=request_digest, answer=answer)
                return answer, False
        if earlier.request != request_digest:
            raise IdempotencyConflict(
                "This idempotency key belongs to another request. Use a new key for each request."
            )
        return earlier.answer, True


def digest_of(key: str) -> str:
    """Return the SHA-256 of a key: its 256 random bits need no slow password hash."""
    return hashlib.sha256(key.encode()).hexdigest()
