"""Bundles leave a bucket and enter one: rows and files together, or neither."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings

from experiments.errors import StoreUnavailable
from experiments.exchange.import_plan import import_bundle
from experiments.library import load_defaults
from experiments.models import Artifact, Experiment
from experiments.store import Bucket
from tests.experiments.exchange.conftest import elsewhere


@pytest.fixture
def exported(bucket: Bucket, bundle: Callable[..., Path]) -> Path:
    """Return the bundle of an experiment that is deleted with its bucket files."""
    place = bundle()
    elsewhere()
    for path, _, _ in list(bucket.below("trials")):
        bucket.remove(path)
    return place


def test_files_go_out_of_the_bucket_and_back_into_it(exported: Path, bucket: Bucket) -> None:
    import_bundle(exported, project=load_defaults())
    contents = [artifact.content() for artifact in Artifact.objects.order_by("trial__position")]
    assert contents == [b"hello %d\n" % number for number in range(4)]
    assert {path for path, _, _ in bucket.below("trials")} == set(Artifact.objects.values_list("path", flat=True))
    assert not list(Path(settings.VAR, "trials").iterdir())


def test_import_stores_nothing_if_the_bucket_fails(
    exported: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, sent = Bucket.put, []

    def put(self: Bucket, file: Path, path: str) -> None:
        if len(sent) == 2:
            raise StoreUnavailable("the store of files does not answer")
        sent.append(path)
        real(self, file, path)

    monkeypatch.setattr(Bucket, "put", put)
    with pytest.raises(StoreUnavailable):
        import_bundle(exported, project=load_defaults())
    assert len(sent) == 2
    assert not list(bucket.below("trials"))
    assert not Experiment.objects.exists()
