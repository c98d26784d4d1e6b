"""A laboratory with rows in it: the library, a person who signed in, and experiments in every state."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.library import load_defaults
from experiments.models import Cluster, Experiment, Membership, Project, Trial, TrialResult
from experiments.spec import parse
from tests.dashboard.reader import Reader
from tests.kept_rows import PUBLISHED_STUDIES

# Values of one repetition per host count; repetitions differ by a few percent.
MEASURED = {
    1: {"elapsed_s": 2.9, "cpu_s": 2.7, "cpu_mean_rank_s": 2.7, "packets": 0},
    2: {"elapsed_s": 2.1, "cpu_s": 3.4, "cpu_mean_rank_s": 1.7, "packets": 21_000},
    4: {"elapsed_s": 2.6, "cpu_s": 4.4, "cpu_mean_rank_s": 1.1, "packets": 84_000},
}


@pytest.fixture
def library(db: None) -> Project:
    PUBLISHED_STUDIES.restore()
    return load_defaults()


@pytest.fixture
def person(library: Project) -> User:
    user = User.objects.create_user("okafor", password="correct horse")
    library.memberships.create(user=user, role=Membership.Role.SUBMITTER)
    return user


@pytest.fixture
def client() -> Client:
    return Reader()


@pytest.fixture
def page(client: Client, person: User, library: Project) -> Client:
    """A browser's stand-in, signed in."""
    client.force_login(person)
    return client


def specification(**changes: Any) -> dict[str, Any]:
    return {
        "name": "Water in miniature",
        "workload": "water",
        "parameters": {"molecules": 216, "steps": 50},
        "sweep": {"hosts": [1, 2, 4]},
        "repetitions": 2,
        **changes,
    }


@pytest.fixture
def submit(library: Project, person: User) -> Callable[..., Experiment]:
    def submit(**changes: Any) -> Experiment:
        return Experiment.submit(parse(specification(**changes)), project=library, owner=person)

    return submit


@pytest.fixture
def run() -> Callable[..., None]:
    """Takes up to `most` waiting trials through their life by the methods that a worker uses."""

    def run(most: int = 1000, trust: str = "good") -> None:
        cluster = Cluster.objects.get(slug="testbed")
        for number in itertools.count(1):
            if number > most or (trial := Trial.claim_next(cluster, "tests:1:1")) is None:
                return
            trial.start_running(
                command=["mpirun", "-np", str(trial.configuration.ranks), "lmp"], conditions={"cores": 2}
            )
            trial.start_analysing()
            trial.finish(TrialResult({"all": values_of(trial)}, {"rtt_min_s": "no handshake captured"}, trust))

    return run


def values_of(trial: Trial) -> dict[str, float]:
    base = MEASURED[trial.configuration.hosts]
    values = {name: value * (1 + 0.02 * trial.repetition) for name, value in base.items()}
    packets = values["packets"] = round(values["packets"])
    if not packets:
        return values
    return {
        **values,
        "interarrival_mean_s": values["elapsed_s"] / packets,
        "throughput_Bps": 640 * packets / values["elapsed_s"],
        "packet_intensity_pps": packets / values["elapsed_s"],
    }
