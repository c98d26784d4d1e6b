"""A finished experiment, made quickly, and its bundle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.exchange.bundle import write_bundle
from experiments.exchange.choice import select_experiments
from experiments.exchange.exporting import BundleOptions
from experiments.models import Experiment, Trial, TrialResult
from tests.experiments import factories


@pytest.fixture
def measured(db: None, session_directory: Path) -> Experiment:
    """Two configurations with two trials each, finished, with an output each."""
    experiment = factories.experiment()
    for number in range(experiment.trials.count()):
        trial = factories.analysing()
        files = [factories.stored_file(trial, content=b"hello %d\n" % number)]
        values = {"elapsed_s": 1.5 + number, "packets": 1200.0}
        trial.finish(
            TrialResult({"all": values, "mpi": {"packets": 1000.0}}, {}, "good", environment={"k": 1}, artifacts=files)
        )
    return experiment


@pytest.fixture
def bundle(measured: Experiment, tmp_path: Path) -> Callable[..., Path]:
    """Writes a bundle of what is named (the experiment) and returns its place."""

    def write(*names: str, file: str = "bundle.zip", **options: Any) -> Path:
        path = tmp_path / file
        with path.open("wb") as stream:
            write_bundle(stream, select_experiments(names or [measured.slug]), BundleOptions(**options))
        return path

    return write


def elsewhere() -> None:
    """Forget what was measured, as another installation never knew it."""
    for trial in Trial.objects.all():
        trial.artifacts.all().delete()
    Experiment.objects.all().delete()
