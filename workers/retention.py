"""Captures that are older than their time of retention go; what was measured from them stays."""

from __future__ import annotations

from datetime import timedelta

import structlog
from django.conf import settings
from django.db.models.functions import Now

from experiments.models import UNFINISHED, Artifact

log = structlog.get_logger()


def remove_old_captures() -> int:
    """Remove the capture files older than the setting allows, and note when; return how many. 0 days keeps them for ever."""
    if not settings.CAPTURE_RETENTION_DAYS:
        return 0
    age = timedelta(days=settings.CAPTURE_RETENTION_DAYS)
    old = Artifact.objects.filter(kind=Artifact.Kind.CAPTURE, removed_at=None, created_at__lt=Now() - age)
    removed = 0
    for artifact in old.exclude(trial__state__in=UNFINISHED).iterator():
        artifact.file.unlink(missing_ok=True)
        removed += Artifact.objects.filter(pk=artifact.pk, removed_at=None).update(removed_at=Now())
    if removed:
        log.info("captures_removed", count=removed, older_than_days=settings.CAPTURE_RETENTION_DAYS)
    return removed
