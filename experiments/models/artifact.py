"""Artifacts: the files of a trial, kept on disk with size and hash."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from experiments.errors import Tampered
from experiments.pure import plain_files


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

    def intact(self) -> Path:
        """Return the file's place once its content is known to be what the trial left.

        Raise Tampered where it is not, NotPlain where no plain file lies there, OSError where it is gone.
        """
        with plain_files.opened(self.file) as stream:
            status = os.fstat(stream.fileno())
            version = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if status.st_size != self.size_bytes or _digest(self.file, version) != self.sha256:
            raise Tampered(
                f"{self.name} was changed after its trial ended: its hash is another one. It is kept, but not used."
            )
        return self.file

    @classmethod
    def describe(cls, trial_id: int, kind: str, file: Path, *, name: str = "") -> Artifact:
        """Return an unsaved row for an existing file below the storage directory. Raise NotPlain for anything but a plain one.

        ``name``: with the subdirectory in which its program wrote it.
        """
        digest, size_bytes = _hash(file)
        return cls(
            trial_id=trial_id,
            kind=kind,
            name=name or file.name,
            path=str(file.relative_to(settings.VAR)),
            size_bytes=size_bytes,
            sha256=digest,
        )


def _hash(file: Path) -> tuple[str, int]:
    digest = hashlib.sha256()
    with plain_files.opened(file) as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
        return digest.hexdigest(), stream.tell()


@functools.lru_cache(maxsize=1024)
def _digest(file: Path, _version: tuple[int, ...]) -> str:
    """The hash of this version of the file: whoever writes to it, or puts another in its place, changes ctime or inode."""
    return _hash(file)[0]
