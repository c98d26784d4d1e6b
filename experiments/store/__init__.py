"""Where the files of trials are kept: a directory of this machine, or a bucket that all machines reach (decision 19).

Nobody else knows which. Who needs a file as a file holds it for a block (`Artifact.intact`); who only passes it on asks for its pieces.
"""

from __future__ import annotations

from typing import Any

from django.core.files.storage import FileSystemStorage, storages

from experiments.store.base import TRIALS, Kept, Store, place_within
from experiments.store.bucket import Bucket
from experiments.store.directory import Directory

__all__ = ["TRIALS", "Bucket", "Directory", "Kept", "Store", "current", "place_within"]


def current() -> Store:
    """The store that the settings name."""
    storage: Any = storages["artifacts"]
    return Directory() if isinstance(storage, FileSystemStorage) else Bucket.of(storage)
