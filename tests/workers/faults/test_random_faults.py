"""Random faults: nothing is lost or doubled. `RANKWIRE_FAULTS=100` runs many."""

from __future__ import annotations

import collections
import os
import time
from collections.abc import Callable

import pytest

from experiments.models import Experiment, State
from tests.workers.faults.conftest import SEED
from tests.workers.faults.laboratory import OVER, Laboratory

FEWEST = 15
FAULTS = int(os.environ.get("RANKWIRE_FAULTS", FEWEST))
# Putting a backup back takes as long as all others together, and has tests of its own (tests/config/backup): in campaigns only.
KINDS = [kind for kind in os.environ.get("RANKWIRE_FAULT_KINDS", "").split(",") if kind]
LONGEST_PAUSE_S = 2.0
MOST_ATTEMPTS = 10 + FAULTS  # each fault may cost one, and a fast program may end before its harm comes

pytestmark = pytest.mark.timeout(120 + 20 * FAULTS)


def test_nothing_is_lost_or_doubled(laboratory: Laboratory, submit: Callable[..., Experiment]) -> None:
    repetitions = max(2, FAULTS // 2)
    # In a long campaign faults may come while the link is measured, too.
    certificate = "degrade" if len(laboratory.faults) < FAULTS else "skip"
    experiment = submit(repetitions=repetitions, retries=10, certificate=certificate)
    laboratory.tick(experiment)
    done: collections.Counter[str] = collections.Counter()
    chosen = KINDS or [kind for kind in laboratory.faults if kind != "restore" or FAULTS > FEWEST]
    kinds = [kind for _ in range(-(-FAULTS // len(chosen))) for kind in chosen]
    laboratory.random.shuffle(kinds)
    for kind in kinds[:FAULTS]:
        harm(laboratory, experiment, kind)
        done[kind] += 1
        time.sleep(laboratory.random.uniform(0.0, LONGEST_PAUSE_S))  # the random moment of the next fault
        laboratory.tick(experiment)
    waiting = experiment.trials.exclude(state__in=OVER)
    for _ in range(repetitions):  # each may take its own deadline
        before = waiting.count()
        laboratory.wait_until(lambda before=before: waiting.count() < max(before, 1), "a trial ends", experiment)
        if not waiting.exists():
            break
    laboratory.require_truth(experiment, repetitions)
    after = submit(repetitions=1)
    laboratory.wait_until(lambda: after.trials.get().state in OVER, "the next trial ends", after)
    assert after.trials.get().state == State.FINISHED, f"the next trial is affected:\n{laboratory.describe(after)}"
    states = collections.Counter(experiment.trials.values_list("state", flat=True))
    print(f"seed {SEED}: {FAULTS} faults {dict(done)}, {repetitions} points, 0 lost, 0 doubled, states {dict(states)}")


def harm(laboratory: Laboratory, experiment: Experiment, kind: str) -> None:
    """Do it once there is something to harm; finished experiments get more."""

    def done() -> bool:
        if not experiment.trials.exclude(state__in=OVER).exists():
            last = experiment.trials.get_queryset().filter(superseded=False).last()
            assert last.attempt < MOST_ATTEMPTS, (
                f"no attempt comes so far as a {kind}:\n{laboratory.describe(experiment)}"
            )
            last.queue_attempt()
        return laboratory.harm(kind)

    laboratory.wait_until(done, f"there is a {kind} to harm", experiment)
