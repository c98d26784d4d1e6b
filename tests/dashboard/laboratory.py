"""A laboratory in tests: users submit, and a worker runs waiting trials."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User

from experiments.library import load_defaults
from experiments.models import Cluster, Experiment, Membership, Project, Trial, TrialResult
from experiments.specification import parse
from tests.kept_rows import PUBLISHED_STUDIES, KeptRows

# Values of one repetition per host count; repetitions differ by a few percent.
MEASURED = {
    1: {"elapsed_s": 2.9, "cpu_s": 2.7, "cpu_mean_rank_s": 2.7, "packets": 0},
    2: {"elapsed_s": 2.1, "cpu_s": 3.4, "cpu_mean_rank_s": 1.7, "packets": 21_000},
    4: {"elapsed_s": 2.6, "cpu_s": 4.4, "cpu_mean_rank_s": 1.1, "packets": 84_000},
}


def okafor(library: Project) -> User:
    """Create a user with the submitter role."""
    user = User.objects.create_user("okafor", password="correct horse")
    library.memberships.create(user=user, role=Membership.Role.SUBMITTER)
    return user


def specification(**changes: Any) -> dict[str, Any]:
    return {
        "name": "Water in miniature",
        "workload": "water",
        "parameters": {"molecules": 216, "steps": 50},
        "sweep": {"hosts": [1, 2, 4]},
        "repetitions": 2,
        **changes,
    }


def laboratory_with(measure: Callable[[Project, User], object]) -> KeptRows:
    """The library, okafor and ``measure``'s trials, for the tests of a module."""

    def make() -> None:
        PUBLISHED_STUDIES.restore()
        library = load_defaults()
        measure(library, okafor(library))

    return KeptRows(make, also=["auth_user"])


def submitted(library: Project, person: User, **changes: Any) -> Experiment:
    return Experiment.submit(parse(specification(**changes)), project=library, owner=person)


def run_waiting(most: int = 1000, trust: str = "good") -> None:
    """Take up to `most` waiting trials through their life, as a worker does."""
    cluster = Cluster.objects.get(slug="testbed")
    for number in itertools.count(1):
        if number > most or (trial := Trial.claim_next(cluster, "tests:1:1")) is None:
            return
        trial.start_running(command=["mpirun", "-np", str(trial.configuration.ranks), "lmp"], conditions={"cores": 2})
        trial.start_analysing()
        trial.finish(TrialResult({"all": values_of(trial)}, {"rtt_min_s": "no handshake captured"}, trust))


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
