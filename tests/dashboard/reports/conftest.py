"""A measured experiment and reports of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.models import Experiment, Project, Report


@pytest.fixture
def experiment(submit: Callable[..., Experiment], run: Callable[..., None], empty_redis: Any) -> Experiment:
    experiment = submit()
    run()
    return experiment


@pytest.fixture
def report(library: Project, person: User, experiment: Experiment) -> Report:
    text = f"Words.\n\n{{{{ chart {experiment.slug} time }}}}\n"
    return Report.write(library, "Water", text, {}, by=person)
