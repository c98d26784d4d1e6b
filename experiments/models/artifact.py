"""Artifacts: the files of a trial, kept on disk with size and hash."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from experiments import plain_files


class Artifact(models.Model):
    """One file of a trial. ``path`` is relative to the storage directory; ``removed_at`` tells that retention took the file."""

    class Kind(models.TextChoices):
        STDOUT = "stdout", "Standard output"
        STDERR = "stderr", "Standard error"
        CAPTURE = "capture", "Packet capture"
        ANALYSIS = "analysis", "Analysis of the capture"
        INPUT = "input", "Input file"
        SAMPLES = "samples", "Host samples"
        OTHER = "other", "Other"

    trial = models.ForeignKey("experiments.Trial", on_delete=models.CASCADE, related_name="artifacts")
    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(max_length=120)
    path = models.CharField(max_length=500)
    size_bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(
        db_default=Now(), editable=False, help_text="By the database's clock: retention must not believe a worker's."
    )
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["kind", "name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["trial", "name"], name="one_artifact_per_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def file(self) -> Path:
        """The file's place on disk."""
        return Path(settings.VAR) / self.path

    @classmethod
    def describe(cls, trial_id: int, kind: str, file: Path) -> Artifact:
        """Return an unsaved row for an existing file below the storage directory. Raise NotPlain for anything but a plain one."""
        digest = hashlib.sha256()
        with plain_files.opened(file) as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
            size_bytes = stream.tell()
        return cls(
            trial_id=trial_id,
            kind=kind,
            name=file.name,
            path=str(file.relative_to(settings.VAR)),
            size_bytes=size_bytes,
            sha256=digest.hexdigest(),
        )
