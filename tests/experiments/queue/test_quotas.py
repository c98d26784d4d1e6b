"""Quotas of a project, and the fields that are refused."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from experiments.errors import InvalidSpec
from experiments.library import load_defaults
from experiments.models import Artifact, Deleted, Experiment, Project, State, Usage
from experiments.selectors import quotas
from tests.experiments.races import at_once
from tests.experiments.specifications import specification
from workers import queue

FOUR = {"sweep": {"hosts": [1, 2]}, "repetitions": 2}


def submitted(project: Project | None = None, **changes: Any) -> Experiment:
    return queue.submit(specification(**FOUR | changes), project=project or load_defaults())


def refused(**changes: Any) -> dict[str, list[str]]:
    with pytest.raises(InvalidSpec) as error:
        submitted(**changes)
    return error.value.by_path()


@pytest.fixture
def project(db: None, empty_redis: object) -> Project:
    return load_defaults()


def test_no_more_trials_wait_than_the_quota_and_nothing_of_what_is_refused_is_stored(
    project: Project, settings: Any
) -> None:
    settings.QUOTA_QUEUED_TRIALS = 6
    submitted()
    [sentence] = refused()["repetitions"]
    assert re.findall(r"\d", sentence) == ["4", "6", "4"]
    assert Experiment.objects.filter(published=False).count() == 1
    Project.objects.update(most_queued_trials=8)
    submitted()
    Project.objects.update(most_queued_trials=0)
    submitted()


def test_trials_keep_the_reserve_of_the_disk(project: Project, settings: Any) -> None:
    """Ten thousand take 22 MB of the database, which stay after a cancellation."""
    settings.DISK_RESERVE_BYTES = 1 << 60
    assert list(refused()) == ["repetitions"]
    assert not Experiment.objects.filter(published=False).exists()


def test_every_way_to_queue_trials_keeps_the_quota(project: Project, settings: Any) -> None:
    experiment = submitted()
    experiment.trials.update(state=State.FAILED)
    settings.QUOTA_QUEUED_TRIALS = 1
    with pytest.raises(InvalidSpec):
        queue.rerun_failed(experiment)
    with pytest.raises(InvalidSpec):
        queue.add_repetitions(experiment, 1)
    with pytest.raises(InvalidSpec):
        queue.revise(experiment, specification(**FOUR | {"repetitions": 3}))
    trials = list(experiment.trials.all())
    queue.run_again(trials[0])
    with pytest.raises(InvalidSpec):
        queue.run_again(trials[1])
    assert experiment.trials.filter(state=State.QUEUED).count() == 1


def test_an_experiment_may_be_made_smaller_beyond_the_quota(project: Project, settings: Any) -> None:
    experiment = submitted()
    settings.QUOTA_QUEUED_TRIALS = 1
    queue.revise(experiment, specification(**FOUR | {"repetitions": 1}))
    assert experiment.trials.filter(state=State.QUEUED).count() == 2


def test_hours_files_and_captures_are_refused_at_their_fields(project: Project) -> None:
    trial = submitted().trials.get(position=1)
    Artifact.objects.create(trial=trial, kind="capture", name="c", path="c", size_bytes=3 << 30, sha256="")
    Artifact.objects.create(trial=trial, kind="stdout", name="o", path="o", size_bytes=1 << 30, sha256="")
    Usage.objects.create(project=project, day=timezone.now().date() - timedelta(days=3), machine_s=7200)
    Project.objects.update(most_capture_gib=3, most_disk_gib=5, most_machine_hours=3)
    assert refused() == {"capture": ["the project Laboratory has used up its quota: 3 of 3 GiB"]}
    submitted(capture={"enabled": False})
    Project.objects.update(most_disk_gib=4, most_machine_hours=2)
    assert set(refused(capture={"enabled": False})) == {"cluster", "repetitions"}
    Artifact.objects.update(removed_at=timezone.now())
    assert set(refused()) == {"cluster"}


def test_files_in_the_trash_count(project: Project) -> None:
    Project.objects.update(most_disk_gib=1)
    Deleted.objects.create(uid=uuid4(), slug="a", name="A", workload="ring", project=project, bytes=1 << 30)
    files = next(quota for quota in quotas.quotas_of([project])[project.pk] if quota.name == "disk_gib")
    assert (files.used, files.in_trash) == (1, 1)
    (message,) = refused()["repetitions"]
    assert message.endswith(f"; {files.trash_words}")


def test_quotas_of_returns_the_use_of_all_projects_in_four_queries(
    project: Project, django_assert_num_queries: Any
) -> None:
    submitted()
    other = Project.objects.create(slug="other", name="Other", most_queued_trials=0)
    with django_assert_num_queries(4):
        taken = quotas.quotas_of([project, other])
    assert [quota.words for quota in taken[other.pk]][:2] == ["0 trials, without limit", "0 of 10\u202f000 hours"]
    assert taken[project.pk][0].used == 4


def test_concurrent_submissions_keep_the_quota(transactional_db: None, empty_redis: object) -> None:
    project = load_defaults()
    Project.objects.update(most_queued_trials=5)

    def ask(_: int) -> bool:
        try:
            queue.submit(specification(**FOUR), project=project)
        except InvalidSpec:
            return False
        return True

    assert sorted(at_once(ask, 4)) == [False, False, False, True]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"time_limit_s": "168 h"}, "time_limit_s", "may hold the hosts for 1\u202fd, not 7\u202fd"),
        ({"sweep": {"ranks_per_host": [1, 1024]}}, "sweep.ranks_per_host", "a trial may have"),
    ],
)
def test_more_ranks_and_time_than_any_trial_needs_are_refused_with_the_reason(
    project: Project, changes: dict[str, Any], field: str, words: str
) -> None:
    errors = refused(**changes)
    assert list(errors) == [field]
    assert words in errors[field][0]
