"""Ticked experiments: archive, restore and tag, with permissions."""

from __future__ import annotations

from typing import Any

from django.test import Client

from experiments.models import Experiment
from tests.dashboard.texts import text_of, undo_of
from tests.experiments import factories

ARCHIVE, RESTORE, TAG = (f"/experiments/chosen/{change}/" for change in ("archive", "restore", "tag"))


def in_list(page: Client, experiment: Experiment, **asked: str) -> bool:
    listed = text_of(page.get("/experiments/", asked)).partition('id="list"')[2]
    return f'"{experiment.get_absolute_url()}"' in listed


def test_archived_experiment_leaves_the_lists_and_is_restored(page: Client, submit: Any, run: Any) -> None:
    experiment = submit(repetitions=1)
    run()
    query = {"of": f"e:{experiment.slug}", "back": "q=water"}
    assert in_list(page, experiment)
    response = page.post(ARCHIVE, query)
    assert response.url == "/experiments/?q=water"
    undo, fields = undo_of(text_of(page.get(response.url)))
    assert not in_list(page, experiment)
    assert in_list(page, experiment, archived="1")
    assert experiment not in [row.experiment for row in page.get("/").context["recent"]]
    assert experiment.name in text_of(page.get(experiment.get_absolute_url()))
    rest = page.get("/api/v1/experiments/", {"archived": "true"}).json()["results"]
    assert [each["slug"] for each in rest] == [experiment.slug]
    page.post(undo, fields)
    assert in_list(page, experiment)


def test_running_published_and_foreign_experiments_stay(page: Client, client: Client, submit: Any) -> None:
    waiting, published = submit(), Experiment.objects.filter(published=True).first()
    assert published is not None
    of = {"of": f"e:{waiting.slug},e:{published.slug},e:nowhere"}
    text = text_of(page.get(ARCHIVE, of))
    for data in (
        "has unfinished trials",
        "holds published results",
        "1 more does not exist",
        "Archive: not possible for these",
        "Back</a>",
    ):
        assert data in text
    nowhere = text_of(page.get(ARCHIVE, {"of": "e:nowhere"})).partition("<main")[2]
    assert "Effect" not in nowhere
    page.post(ARCHIVE, of)
    assert not Experiment.objects.exclude(archived_at=None).exists()
    waiting.trials.update(state="cancelled")
    client.force_login(factories.person("vera", "viewer"))
    client.post(ARCHIVE, of)
    client.post(TAG, {**of, "add": "mine"})
    assert not Experiment.objects.exclude(archived_at=None).exists()
    assert not Experiment.objects.filter(tags__contains=["mine"]).exists()


def test_tags_are_a_new_version_that_asks_for_no_other_trial(page: Client, submit: Any, run: Any) -> None:
    one, two = submit(name="One", tags=["draft"]), submit(name="Two")
    run(most=1)
    trials = list(one.trials.order_by("pk").values_list("pk", "state", "version"))
    of = {"of": f"e:{one.slug},e:{two.slug}"}
    assert text_of(page.get(TAG, of)).count('name="add"') == 1
    page.post(TAG, {**of, "add": "paper, night", "remove": "draft"})
    for experiment in (one, two):
        experiment.refresh_from_db()
        assert (experiment.tags, experiment.version) == (["paper", "night"], 2)
        assert experiment.spec.tags == ("paper", "night")
        assert list(experiment.versions.values_list("number", flat=True)) == [1, 2]
        assert experiment.specification_hash == experiment.versions.get(number=2).hash
    assert list(one.trials.order_by("pk").values_list("pk", "state", "version")) == trials
    assert in_list(page, one, tag="paper")
    page.post(TAG, {**of, "remove": "draft"})  # which neither has
    assert Experiment.objects.get(pk=one.pk).version == 2
    assert one.revise(one.spec) == 0, "an edit that changes nothing keeps the tags and queues nothing"


def test_invalid_tags_are_refused_with_the_input(page: Client, submit: Any) -> None:
    experiment = submit()
    for written, data in (
        ({}, "Write a tag"),
        ({"add": "x" * 41}, "too long"),
        ({"add": "night", "remove": "night"}, "cannot be added and removed"),
    ):
        response = page.post(TAG, {"of": f"e:{experiment.slug}", **written})
        assert response.status_code == 422
        text = response.content.decode()
        assert data in text
        assert f'value="{written.get("add", "")}"' in text
    experiment.refresh_from_db()
    assert experiment.version == 1
