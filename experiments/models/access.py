"""API tokens, stored hashed."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone


class ApiToken(models.Model):
    """A person's key to the REST interface. The key itself is shown once and never stored."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @classmethod
    def issue(cls, user: Any, name: str) -> tuple[ApiToken, str]:
        """Make a token; return its row and the key, which nobody can read again."""
        key = f"rw_{secrets.token_urlsafe(32)}"
        return cls.objects.create(user=user, name=name, prefix=key[:8], digest=_digest(key)), key

    @classmethod
    def find(cls, key: str) -> ApiToken | None:
        """Return the token of ``key`` with its user, or None; the last use is noted to the day."""
        token = cls.objects.select_related("user").filter(digest=_digest(key), user__is_active=True).first()
        now = timezone.now()
        if token is not None and (token.last_used_at is None or token.last_used_at.date() < now.date()):
            cls.objects.filter(pk=token.pk).update(last_used_at=now)
        return token


def _digest(key: str) -> str:
    # The key has 256 random bits, so one round of SHA-256 is as strong as a slow password hash.
    return hashlib.sha256(key.encode()).hexdigest()
