"""File store of trials: a local directory, or a bucket (decision 19).

Callers do not know which. `Artifact.intact` provides a local file for a block; ``pieces`` streams it.
"""

from __future__ import annotations

from typing import Any

from django.core.files.storage import FileSystemStorage, storages

from experiments.store.base import TRIALS, Store, StoredFile, place_within
from experiments.store.bucket import Bucket
from experiments.store.directory import Directory

__all__ = ["TRIALS", "Bucket", "Directory", "Store", "StoredFile", "current", "place_within"]


def current() -> Store:
    """Return the store of the settings."""
    storage: Any = storages["artifacts"]
    return Directory() if isinstance(storage, FileSystemStorage) else Bucket.of(storage)
