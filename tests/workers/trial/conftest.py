"""Fixtures of the pipeline's tests: an experiment, a chosen workload."""

from __future__ import annotations

import dataclasses
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from experiments import workloads
from experiments.library import load_defaults
from experiments.models import Experiment, Trial
from experiments.specification import parse
from tests.workers.trial.script_workload import SCRIPT
from workers import tasks
from workers.agent import sandbox
from workers.trial import pipeline


@pytest.fixture
def script_workload(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Register the workload ``script`` for a test, with changed fields."""

    def register(**fields: Any) -> None:
        monkeypatch.setitem(workloads._WORKLOADS, SCRIPT.slug, dataclasses.replace(SCRIPT, **fields))

    register()
    return register


@pytest.fixture
def open_path() -> Iterator[Path]:
    """Return a directory that programs of trials see, unlike ``tmp_path``."""
    above = next(path for path in (settings.BASE_DIR / "var", Path("/opt"), Path("/srv")) if _is_open(path))
    with tempfile.TemporaryDirectory(dir=above, prefix="programs-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def _is_open(path: Path) -> bool:
    """Return whether a user without an account can get there, in a sandbox too."""
    above = [path, *path.parents]
    return not {*above} & {*sandbox.HIDDEN} and all(item.stat().st_mode & stat.S_IXOTH for item in above)


@pytest.fixture
def submit(transactional_db: None) -> Callable[..., Experiment]:
    """Store an experiment of the given fields; nothing runs it yet."""

    def store(**fields: Any) -> Experiment:
        spec = {"name": "under test", "repetitions": 1, "cluster": "testbed", "certificate": "skip", **fields}
        return Experiment.submit(parse(spec), project=load_defaults())

    return store


@pytest.fixture
def run_all(submit: Callable[..., Experiment], empty_redis: object) -> Iterator[Callable[..., list[Trial]]]:
    """Run all trials of an experiment here by the task; return them in order.

    ``meanwhile`` is called between submission and run.
    """

    def run(*, meanwhile: Callable[[], object] = lambda: None, **fields: Any) -> list[Trial]:
        experiment = submit(**fields)
        meanwhile()
        tasks.work(experiment.cluster_id)
        return list(experiment.trials.order_by("position"))

    yield run
    pipeline.POOL.close()
