"""Artifacts: the stored files of trials, with size and hash."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from experiments import store
from experiments.store.digest import hash_of


class Artifact(models.Model):
    """One file of a trial, at ``path`` in the store; retention sets ``removed_at``."""

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
        """Return the path on the worker; other code uses `intact` or `stored_file`."""
        return Path(settings.VAR) / self.path

    @property
    def stored_file(self) -> store.StoredFile:
        """Return the path, size, hash and name that the store needs."""
        return store.StoredFile(self.path, self.size_bytes, self.sha256, self.name)

    @contextmanager
    def intact(self) -> Iterator[Path]:
        """Provide the verified file as a local path for the block.

        Raise Tampered, NotPlain, or OSError (StoreUnavailable included).
        """
        with store.current().held(self.stored_file) as file:
            yield file

    def content(self) -> bytes:
        """Return the bytes of the file. Raise as ``intact`` does."""
        with self.intact() as file:
            return file.read_bytes()

    @classmethod
    def describe(cls, trial_id: int, kind: str, file: Path, *, name: str = "") -> Artifact:
        """Return an unsaved row for a plain file in the storage directory. Raise NotPlain.

        ``name`` includes the subdirectory in which the program wrote it.
        """
        digest, size_bytes = hash_of(file)
        return cls(
            trial_id=trial_id,
            kind=kind,
            name=name or file.name,
            path=str(file.relative_to(settings.VAR)),
            size_bytes=size_bytes,
            sha256=digest,
        )
