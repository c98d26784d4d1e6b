"""The identity of this installation in exported and imported results."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models


class Installation(models.Model):
    """The only row, with the identity of this installation."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    only = models.BooleanField(default=True, unique=True, editable=False)

    def __str__(self) -> str:
        return str(self.uid)

    @classmethod
    def current(cls) -> Installation:
        """Return the row, created at first use."""
        return cls.objects.get_or_create(only=True)[0]

    @property
    def name(self) -> str:
        return str(settings.INSTALLATION_NAME)
