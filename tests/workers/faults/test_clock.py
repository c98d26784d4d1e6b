"""A step of the machine's clock loses no trial and ends none: lives are counted in beats, lengths taken from the monotonic
clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from experiments.models import Cluster, Experiment, State, Trial
from tests.conftest import Services
from tests.workers.faults.stepped_clock import reap_with_clock
from workers.worker_identity import identity

ROUNDS = 6  # more than a silent trial survives
REAP_BESIDE_BEATS = f"""\
import django
django.setup()
from experiments.models import Trial
from workers import reaper
print("lost", sum(reaper.reap() for _ in range({ROUNDS}) if Trial.objects.get().beat() is False))
"""


@pytest.mark.parametrize("step", ["+2d", "-2d"])
def test_a_reaper_two_days_off_finds_no_living_trial_lost(
    step: str, submit: Callable[..., Experiment], services: Services
) -> None:
    experiment = submit()
    trial = Trial.claim_next(Cluster.objects.get(pk=experiment.cluster_id), identity())
    assert trial is not None
    assert reap_with_clock(step, services, REAP_BESIDE_BEATS) == "lost 0"
    trial.refresh_from_db()
    assert trial.state == State.PREPARING


def test_silence_is_counted_in_rounds_not_in_seconds(submit: Callable[..., Experiment]) -> None:
    experiment = submit()
    trial = Trial.claim_next(Cluster.objects.get(pk=experiment.cluster_id), identity())
    assert trial is not None
    assert [trial.note_silence() for _ in range(5)] == [False, False, False, False, True]
    trial.beat()
    assert trial.note_silence() is False
