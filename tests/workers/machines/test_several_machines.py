"""One web process, two machines with workers, shared services only.

They share PostgreSQL, Redis and a bucket. One machine's worker dies, the other is cut off until its trial is given up:
nothing is lost, nothing is there twice.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings

from config.celery import app as celery_app
from experiments.library import load_defaults
from experiments.models import ApiToken, Artifact, Experiment, Lease, Measurement, State, Trial
from experiments.models.states import ACTIVE
from experiments.specification import parse
from experiments.store import Bucket
from tests.conftest import SESSION, Services
from tests.experiments import factories
from tests.s3_server import S3Server
from tests.web_process import running_site
from tests.workers.machines.machines import Machine, switched
from workers import queue, store

SWEEP_S = 1.5
"""Beat has five seconds; four rounds of silence mean lost."""
POINTS = 10
MORE = 8
"""Asked for before the machine is cut off: a quick one has done all others by then."""
SPEC = {
    "name": "on two machines",
    "cluster": "testbed",
    "certificate": "skip",
    "workload": "water",
    "parameters": {"molecules": 512, "steps": 60},
    "sweep": {"hosts": [2]},
    "repetitions": POINTS,
    "retries": 5,
}


@pytest.fixture
def machines(
    transactional_db: None, empty_redis: object, services: Services, s3_server: S3Server, bucket: Bucket
) -> Iterator[list[Machine]]:
    with switched(services, s3_server, "m1", "m2") as machines:
        for machine in machines:
            machine.environment["RANKWIRE_STORE_PREFIX"] = settings.STORAGES["artifacts"]["OPTIONS"]["location"]
        yield machines


def wait_until(condition: Callable[[], object], what: str, *, timeout_s: float = 120) -> None:
    """Wait while beat's tasks continue."""
    deadline, next_sweep = time.monotonic() + timeout_s, 0.0
    while not condition():
        now = time.monotonic()
        assert now < deadline, f"waited in vain until {what}: {described()}"
        if now >= next_sweep:
            next_sweep = now + SWEEP_S
            celery_app.send_task("workers.tasks.sweep")
        time.sleep(0.05)


def described() -> str:
    rows = Trial.objects.order_by("pk").values_list("pk", "repetition", "attempt", "state", "worker", "message")
    logs = [f"{log.name}:\n{log.read_text()[-3000:]}" for log in SESSION.glob("machine-*.log")]
    return "\n".join([*map(str, rows), *logs])


def running_on(machine: Machine) -> Trial | None:
    """The trial whose program runs there."""
    return Trial.objects.filter(state__in=ACTIVE, worker__startswith=f"{machine.name}:").first()


def started_on(machine: Machine) -> Trial | None:
    """One that has its end before it."""
    return Trial.objects.filter(state=State.PREPARING, worker__startswith=f"{machine.name}:").first()


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "cut_off_s",
    [pytest.param(0.0, id="until given up"), pytest.param(60.0, id="for a minute", marks=pytest.mark.nightly)],
)
def test_nothing_is_lost_or_doubled(
    cut_off_s: float, machines: list[Machine], services: Services, tmp_path: Path, bucket: Bucket
) -> None:
    one, two = machines
    one.start_worker()
    two.start_worker()
    experiment = queue.submit(parse(SPEC), project=load_defaults())
    trials_run_on_both_at_once_each_with_a_lease(one, two)
    the_trial_of_a_worker_that_is_killed_runs_again(one)
    one.start_worker()
    queue.add_repetitions(experiment, MORE)
    the_trial_of_a_machine_that_is_cut_off_runs_again_and_counts_once(one, two, cut_off_s)
    if cut_off_s:  # the other machine has done all the rest meanwhile
        before = set(experiment.trials.values_list("pk", flat=True))
        queue.add_repetitions(experiment, MORE)
        again = experiment.trials.exclude(pk__in=before).filter(worker__startswith="m2:")
        wait_until(again.exists, "the machine that was cut off works again")
    wait_until(lambda: not experiment.trials.unfinished().exists(), "all is over", timeout_s=180)
    each_point_has_one_result(experiment, bucket, POINTS + MORE + (MORE if cut_off_s else 0))
    the_web_process_gives_the_files_of_both(experiment, services, tmp_path)


def trials_run_on_both_at_once_each_with_a_lease(one: Machine, two: Machine) -> None:
    wait_until(lambda: running_on(one) and running_on(two), "both run a trial at once")
    holders = list(Lease.objects.filter(resource__startswith="machine:").values_list("resource", "trial__worker"))
    assert len({resource for resource, _ in holders}) == len(holders)
    assert len({worker.partition(":")[0] for _, worker in holders if worker}) == len(holders)


def the_trial_of_a_worker_that_is_killed_runs_again(machine: Machine) -> None:
    wait_until(lambda: running_on(machine), f"{machine.name} runs a trial")
    trial = running_on(machine)
    machine.worker.kill()
    assert trial is not None
    is_given_up(trial)


def the_trial_of_a_machine_that_is_cut_off_runs_again_and_counts_once(
    one: Machine, two: Machine, cut_off_s: float
) -> None:
    wait_until(lambda: running_on(one) and running_on(two), "both run again")
    wait_until(lambda: started_on(two), "it begins another trial")
    trial = started_on(two)
    two.cut_off()
    end = time.monotonic() + cut_off_s
    assert trial is not None
    is_given_up(trial)
    wait_until(lambda: time.monotonic() >= end, "it was cut off for so long")
    two.reconnect()
    before = set(Trial.objects.filter(worker__startswith="m2:").values_list("pk", flat=True))
    wait_until(
        lambda: (
            not Trial.objects.unfinished().exists()
            or Trial.objects.filter(worker__startswith="m2:").exclude(pk__in=before).exists()
        ),
        "the machine that was cut off works again",
    )


def is_given_up(trial: Trial) -> None:
    again = {"configuration": trial.configuration_id, "repetition": trial.repetition, "attempt": trial.attempt + 1}
    wait_until(lambda: Trial.objects.filter(**again).exists(), f"{trial} is run again")
    trial.refresh_from_db()
    assert trial.state == State.LOST
    assert "stopped reporting" in trial.message
    assert not Lease.objects.filter(trial=trial).exists()


def each_point_has_one_result(experiment: Experiment, bucket: Bucket, points: int) -> None:
    standing = experiment.trials.filter(superseded=False)
    assert {trial.state for trial in standing} == {State.FINISHED}, described()
    assert sorted(standing.values_list("repetition", flat=True)) == list(range(1, points + 1))
    assert {worker.partition(":")[0] for worker in standing.values_list("worker", flat=True)} == {"m1", "m2"}
    rows = list(Measurement.objects.values_list("trial", "scope", "metric"))
    assert len(rows) == len(set(rows))
    assert {trial for trial, _, _ in rows} == set(standing.values_list("pk", flat=True))
    assert not Lease.objects.exists()
    named = set(Artifact.objects.values_list("path", flat=True))
    wait_until(lambda: {path for path, _, _ in bucket.below("trials")} == named, "nothing else is in the bucket")
    assert not len(store.check(hashes=True))


def the_web_process_gives_the_files_of_both(experiment: Experiment, services: Services, tmp_path: Path) -> None:
    _, key = ApiToken.issue(factories.person("ada", "viewer"), "web")
    options = settings.STORAGES["artifacts"]["OPTIONS"]
    variables = {
        "RANKWIRE_VAR": str(tmp_path / "web"),
        "RANKWIRE_SECRET_KEY": settings.SECRET_KEY,
        "RANKWIRE_STORE_BUCKET": options["bucket_name"],
        "RANKWIRE_STORE_ENDPOINT": options["endpoint_url"],
        "RANKWIRE_STORE_REGION": "us-east-1",
        "RANKWIRE_STORE_PREFIX": options["location"],
        "RANKWIRE_STORE_KEY": options["access_key"],
        "RANKWIRE_STORE_SECRET": options["secret_key"],
    }
    with running_site(services, **variables) as site:
        for name in ("m1", "m2"):
            trial = experiment.trials.filter(state=State.FINISHED, worker__startswith=f"{name}:").first()
            assert trial is not None
            for stored in trial.artifacts.filter(kind__in=("stdout", "samples")):
                address = f"/api/v1/trials/{trial.pk}/artifacts/{stored.name}/"
                status, body = site.answer("GET", address, Authorization=f"Bearer {key}")
                assert (status, hashlib.sha256(body.encode()).hexdigest()) == (200, stored.sha256)
