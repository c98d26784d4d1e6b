"""Preferences of users: theme, time zone, and the last visit."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone

_SEEN_TO: Final = timedelta(minutes=15)
"""Resolution of the last visit: pages that poll every few seconds must not write as often."""


@cache
def time_zones() -> frozenset[str]:
    """Return the names of the time zone database, read once from hundreds of files."""
    return frozenset(available_timezones())


def require_time_zone(name: str) -> None:
    """Raise ValidationError unless the time zone database has ``name``."""
    if name not in time_zones():
        raise ValidationError(f"There is no time zone {name!r}.")


class Preferences(models.Model):
    """A user's preferences in all browsers."""

    class Theme(models.TextChoices):
        SYSTEM = "system", "as the system"
        LIGHT = "light", "light"
        DARK = "dark", "dark"

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preferences")
    theme = models.CharField(max_length=6, choices=Theme, default=Theme.SYSTEM)
    time_zone = models.CharField(max_length=64, blank=True, validators=[require_time_zone])
    seen_at = models.DateTimeField(null=True, blank=True, editable=False)

    def __str__(self) -> str:
        return f"preferences of {self.user}"

    @classmethod
    def of_user(cls, user: Any) -> Preferences:
        """Return the preferences of ``user``; an unsaved row by default."""
        try:
            preferences: Preferences = user.preferences
        except cls.DoesNotExist:
            preferences = cls(user=user)
        return preferences

    @classmethod
    def keep_theme(cls, user: Any, theme: str) -> None:
        cls.objects.update_or_create(user=user, defaults={"theme": cls.Theme(theme)})

    @classmethod
    def note_seen(cls, user: Any) -> None:
        """Record a visit of ``user``."""
        now, last = timezone.now(), cls.of_user(user).seen_at
        if last is not None and now - last < _SEEN_TO:
            return
        if not cls.objects.filter(user=user.pk).update(seen_at=now):
            Preferences.objects.bulk_create([Preferences(user_id=user.pk, seen_at=now)], ignore_conflicts=True)

    @property
    def zone(self) -> ZoneInfo | None:
        """Return the chosen time zone; None for the installation's."""
        return ZoneInfo(self.time_zone) if self.time_zone in time_zones() else None
