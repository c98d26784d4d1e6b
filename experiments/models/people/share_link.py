"""Share links: read access to an experiment, comparison or report, for some days."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import models, transaction
from django.utils import timezone

from experiments.models.experiment import Experiment
from experiments.models.people.access import digest_of
from experiments.models.report import Report

DAYS: Final = (7, 30, 90)


class ShareLink(models.Model):
    """The pages of `experiments`, their comparison (`query`), or one `report`."""

    experiments = models.ManyToManyField(Experiment, related_name="share_links")
    query = models.TextField(blank=True)
    report = models.ForeignKey(Report, on_delete=models.CASCADE, null=True, blank=True, related_name="share_links")
    digest = models.CharField(max_length=64, unique=True)
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="share_links")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"share link {self.pk} by {self.made_by}"

    @classmethod
    def issue(
        cls, experiments: Iterable[Experiment], *, by: Any, days: int, query: str = "", report: Report | None = None
    ) -> tuple[ShareLink, str]:
        """Create a link; return its row and its key."""
        key = secrets.token_urlsafe(24)
        end = timezone.now() + timedelta(days=days)
        with transaction.atomic():
            link = cls.objects.create(made_by=by, digest=digest_of(key), expires_at=end, query=query, report=report)
            link.experiments.set(experiments)
        return link, key

    @classmethod
    def find(cls, key: str) -> ShareLink | None:
        """Return the valid link of ``key``, or None; record the day of use."""
        now = timezone.now()
        # Links of closed accounts are invalid, and those of an experiment in the trash.
        shows = models.Q(experiments__isnull=False) | models.Q(report__isnull=False)
        link = cls.objects.filter(shows, digest=digest_of(key), expires_at__gt=now, made_by__is_active=True).first()
        if link is not None and (link.last_used_at is None or link.last_used_at.date() < now.date()):
            cls.objects.filter(pk=link.pk).update(last_used_at=now)
        return link

    @property
    def is_over(self) -> bool:
        return self.expires_at <= timezone.now()
