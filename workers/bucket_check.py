"""Rows and files of a bucket held against each other: both come in the order of their paths, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from django.db.models.functions import Collate

from experiments import store
from experiments.models import Artifact


class Pair(NamedTuple):
    """A path with what the bucket has there and what row names it; either may be None."""

    path: str
    size_bytes: int | None
    stored_at: datetime | None
    artifact: Artifact | None


def pairs(bucket: store.Bucket) -> Iterator[Pair]:
    """Yield every path that the bucket or a row has, in order."""
    # As bytes, which is the order in which a bucket lists; Python compares code points, in the same order.
    rows = Artifact.objects.select_related("trial").only(
        *("path", "size_bytes", "sha256", "name", "kind", "removed_at", "trial__state")
    )
    named = rows.order_by(Collate("path", "C")).iterator(chunk_size=1000)
    there = bucket.below(store.TRIALS)
    row, found = next(named, None), next(there, None)
    while row is not None or found is not None:
        if found is not None and (row is None or found[0] < row.path):
            yield Pair(*found, None)
            found = next(there, None)
        elif row is not None and (found is None or row.path < found[0]):
            yield Pair(row.path, None, None, row)
            row = next(named, None)
        elif row is not None and found is not None:
            yield Pair(*found, row)
            row, found = next(named, None), next(there, None)
