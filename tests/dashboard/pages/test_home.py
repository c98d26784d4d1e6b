"""Home: the tour for new users, the demonstration, and one list by time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from experiments.library import FIRST_STUDY, load_defaults
from experiments.models import Event, Experiment, Project, Trial
from experiments.specification import parse_yaml
from tests.experiments import factories
from workers import queue

TOUR = f'href="{reverse("new")}?tour=1"'


@pytest.fixture
def demonstration(library: Any) -> Experiment:
    """The study that the first start queues."""
    call_command("set_up")
    return Experiment.objects.get(slug=FIRST_STUDY.stem)


def test_a_user_without_experiments_is_offered_the_tour_beside_the_demonstration(
    page: Client, demonstration: Experiment, submit: Callable[..., Experiment]
) -> None:
    response = page.get(reverse("home"))
    assert response.context["demonstration"] == demonstration
    text = response.content.decode()
    assert TOUR in text
    assert "is a demonstration" in text
    submit()
    text = page.get(reverse("home")).content.decode()
    assert TOUR not in text
    assert "is a demonstration" not in text


def test_the_owner_of_the_demonstration_has_run_nothing_either(
    page: Client, demonstration: Experiment, person: User
) -> None:
    Experiment.objects.filter(pk=demonstration.pk).update(owner=person)
    assert TOUR in page.get(reverse("home")).content.decode()


@pytest.mark.parametrize("is_superuser", [False, True])
def test_administrators_are_offered_the_pages_that_set_up_the_site(
    page: Client, person: User, demonstration: Experiment, is_superuser: bool
) -> None:
    User.objects.filter(pk=person.pk).update(is_superuser=is_superuser)
    assert ("To set up the site" in page.get(reverse("home")).content.decode()) is is_superuser


@pytest.mark.parametrize("origin", ["name", "command line"])
def test_another_experiment_with_its_slug_is_not_the_demonstration(
    page: Client, person: User, library: Any, origin: str
) -> None:
    spec = parse_yaml(FIRST_STUDY.read_text())
    if origin == "name":
        spec = spec.model_copy(update={"name": FIRST_STUDY.stem})
        experiment = queue.submit(spec, project=load_defaults(), owner=person)
    else:  # script/run stores it under the name of the file
        experiment = queue.submit(spec, project=load_defaults(), slug=FIRST_STUDY.stem)
    assert experiment.slug == FIRST_STUDY.stem

    response = page.get(reverse("home"))

    assert response.context["demonstration"] is None
    assert response.context["counts"]["of_user"] == (origin == "name")
    assert (TOUR in response.content.decode()) == (origin != "name")


def test_activity_is_one_list_by_time(page: Client, submit: Callable[..., Experiment], run: Any) -> None:
    ended, queued = submit(name="Ended"), submit(name="Queued")
    run(most=ended.trials.count())
    now = timezone.now()
    Event.objects.filter(experiment=ended).update(at=now - timedelta(minutes=21))
    Experiment.objects.filter(pk=queued.pk).update(created_at=now - timedelta(minutes=1))
    activity = page.get(reverse("home")).context["activity"]
    assert [row["at"] for row in activity] == sorted((row["at"] for row in activity), reverse=True)
    assert activity[0]["experiment"].experiment == queued


def test_home_is_refreshed_when_a_trial_ends_and_another_is_queued(page: Client, library: Any) -> None:
    experiment = factories.experiment(sweep={"hosts": [1]}, repetitions=2)
    before = page.get(reverse("pulse")).context["seen"]
    last = Trial.objects.filter(experiment=experiment).latest("pk")
    Trial.objects.filter(pk=last.pk).update(superseded=True, state="finished")
    last.pk, last.attempt = None, last.attempt + 1
    last.save()
    response = page.get(reverse("pulse"), {"seen": before})
    assert (response.context["running"], response.context["queued"]) == (0, 2)
    assert response.context["repeated"] == 1, "the reason for less progress than before"
    assert "rankwire:work" in response.headers["HX-Trigger"]


def test_users_without_a_role_are_offered_no_experiment(page: Client, person: User, library: Any) -> None:
    assert "Import YAML" in page.get("/").content.decode()
    person.memberships.all().delete()  # type: ignore[attr-defined]
    assert "Import YAML" not in page.get("/").content.decode()


def test_trials_that_wait_are_not_counted_as_finished(page: Client, submit: Callable[..., Experiment]) -> None:
    submit()
    assert page.get(reverse("home")).context["trials"] == 0


def test_experiments_and_trials_of_the_user_alone_are_counted(
    page: Client, submit: Callable[..., Experiment], person: User
) -> None:
    experiment = submit()
    experiment.trials.update(state="finished")
    counts = []
    for owner in (person, None):
        Experiment.objects.filter(pk=experiment.pk).update(owner=owner)
        context = page.get(reverse("home")).context
        counts.append((context["counts"]["of_user"], context["trials"]))
    assert counts == [(1, experiment.trials.count()), (0, 0)]


def test_trials_of_other_projects_are_counted_as_running(page: Client, submit: Callable[..., Experiment]) -> None:
    submit()
    foreign = factories.experiment(project=Project.objects.create(slug="optics", name="Optics"))
    Trial.objects.filter(pk=foreign.trials.first().pk).update(state="preparing", preparing_at=timezone.now())
    context = page.get(reverse("home")).context
    assert (context["running"], context["of_others"]) == ([], 1)
