"""Time inside MPI on a trial's page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.test import Client

from experiments.models import Trial
from tests.dashboard.panels.trial.profiles import with_profile
from tests.dashboard.texts import plain_text, text_of
from tests.experiments.factories import experiment, finished

RECORDED = json.loads(Path("tests/data/mpi-profile-imbalance.json").read_text())["profile"]


@pytest.fixture
def trial(library: object) -> Trial:
    experiment()
    return finished()


def test_it_shows_functions_and_ranks(page: Client, trial: Trial) -> None:
    words = plain_text(text_of(page.get(with_profile(trial, RECORDED).get_absolute_url())))
    assert "Inside MPI, rank by rank" in words
    assert "MPI_Send 439.1 ms 23.9 % 20 21.96 ms 38.01 ms 20 kB 1" in words
    assert "2 ranks, total" in words
