"""A laboratory: the library, a user who signed in, experiments by state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.library import load_defaults
from experiments.models import Experiment, Project
from tests.dashboard.laboratory import okafor, run_waiting, submitted
from tests.dashboard.reader import Reader
from tests.kept_rows import PUBLISHED_STUDIES


@pytest.fixture
def library(db: None) -> Project:
    PUBLISHED_STUDIES.restore()
    return load_defaults()


@pytest.fixture
def person(library: Project) -> User:
    return okafor(library)


@pytest.fixture
def client() -> Client:
    return Reader()


@pytest.fixture
def page(client: Client, person: User, library: Project) -> Client:
    """A browser's stand-in, signed in."""
    client.force_login(person)
    return client


@pytest.fixture
def submit(library: Project, person: User) -> Callable[..., Experiment]:
    return partial(submitted, library, person)


@pytest.fixture
def run() -> Callable[..., None]:
    return run_waiting
