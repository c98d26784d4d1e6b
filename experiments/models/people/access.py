"""What comes with requests: API tokens, stored hashed, and keys by which a request that is sent twice is done once."""

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

from experiments.errors import KeyOfAnother
from experiments.models.ordered_json import OrderedJSONField
from experiments.models.people.project import Membership, Project

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
        if user is not None:
            ApiToken.objects.filter(user=user).delete()

    def get_help_text(self) -> str:
        return "A changed password ends all API tokens of its owner."


class IdempotencyKey(models.Model):
    """A request that was done, by the key that its sender gave it, and how it was answered: the same one is not done again."""

    KEPT: ClassVar = timedelta(days=1)

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)
    request = models.CharField(max_length=64, help_text="Digest of what was asked.")
    answer: models.JSONField[dict[str, Any], dict[str, Any]] = OrderedJSONField()
    asked_at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["owner", "digest"], name="one_answer_of_each_key")]

    def __str__(self) -> str:
        return self.digest

    @classmethod
    def once(cls, owner: Any, key: str, request: str, act: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], bool]:
        """Act, unless ``owner`` asked with this key before; return the answer, and whether it is that of the earlier request.

        All of it is one transaction: where ``act`` raises, nothing is kept and the key is free again; of two at once the second
        waits for the first. ``request`` says what is asked. Raise KeyOfAnother where the key came with something else.
        """
        digest, asked = digest_of(key), digest_of(request)
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 14))", [f"{owner.pk}:{digest}"])
            earlier = cls.objects.filter(owner=owner.pk, digest=digest).first()
            if earlier is None:
                answer = act()
                cls.objects.create(owner_id=owner.pk, digest=digest, request=asked, answer=answer)
                return answer, False
        if earlier.request != asked:
            raise KeyOfAnother(
                "This idempotency key came with another request before. Give each request a key of its own."
            )
        return earlier.answer, True


def digest_of(key: str) -> str:
    """What is stored of a key. It has 256 random bits, so one round of SHA-256 is as strong as a slow password hash."""
    return hashlib.sha256(key.encode()).hexdigest()
