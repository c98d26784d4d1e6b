"""Environments: hardware and software of trials, stored once per distinct content."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.db import models


class Environment(models.Model):
    """Kernel, processor, network devices, MPI and program, shared by trials."""

    hash = models.CharField(max_length=64, unique=True)
    facts: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField()
    first_seen_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.hash[:12]

    @classmethod
    def store(cls, facts: dict[str, Any]) -> Environment:
        """Return the row for ``facts``, created if new."""
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        return cls.objects.get_or_create(hash=digest, defaults={"facts": facts})[0]
