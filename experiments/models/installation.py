"""This installation: what tells it from others that results come from and go to."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models


class Installation(models.Model):
    """One row: the identity that results which leave take along."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    only = models.BooleanField(default=True, unique=True, editable=False)

    def __str__(self) -> str:
        return str(self.uid)

    @classmethod
    def own(cls) -> Installation:
        """Return the row, made when it is first asked for."""
        return cls.objects.get_or_create(only=True)[0]

    @property
    def name(self) -> str:
        return str(settings.INSTALLATION_NAME)
