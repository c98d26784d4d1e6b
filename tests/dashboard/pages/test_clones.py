"""A clone is compared with its original by one link."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from lxml import html

from config.services.redis import Redis
from experiments.models import Experiment
from experiments.selectors.diagnosis import cached_diagnosis, diagnosis_of
from experiments.specification import parse
from tests.dashboard.panels.new.posts import posted


def comparisons(page: Client, experiment: Experiment) -> list[str]:
    document = html.fromstring(page.get(experiment.get_absolute_url()).content.decode())
    return document.xpath(f"//a[starts-with(@href, '{reverse('compare')}?of=') and contains(@href, ',')]/@href")


def test_clone_links_to_the_comparison_with_its_original(
    page: Client, submit: Callable[..., Experiment], run: Callable[..., None]
) -> None:
    original = submit(name="Original", repetitions=2)
    form = html.fromstring(page.get(reverse("new"), {"from": original.slug}).content.decode())
    assert form.xpath("//form[@id='new']//input[@name='from']/@value") == [original.slug]
    page.post(reverse("new"), {**dict(posted(name="Copy").lists()), "from": original.slug})
    clone = Experiment.objects.get(name="Copy")
    assert clone.cloned_from == original
    run()
    assert comparisons(page, original) == []
    (address,) = comparisons(page, clone)
    compared = page.get(address).context["compared"]
    assert [member.experiment for member in compared.members] == [original, clone]
    assert compared.baseline.experiment == original
    for chosen in (original, clone):  # the older one is the baseline on both pages
        choices = html.fromstring(page.get(reverse("compare"), {"of": f"e:{chosen.slug}"}).content.decode())
        assert f"{reverse('compare')}?of=e:{original.slug},e:{clone.slug}" in choices.xpath("//table//a/@href")
    original.delete()
    clone.refresh_from_db()
    assert comparisons(page, clone) == []


def test_form_ignores_an_original_that_is_gone(page: Client, submit: Callable[..., Experiment]) -> None:
    assert page.get(reverse("new"), {"from": "nosuch"}).status_code == 404
    answer = page.post(reverse("new"), {**dict(posted(name="Copy").lists()), "from": "nosuch"})
    assert answer.status_code == 302
    assert Experiment.objects.get(name="Copy").cloned_from is None


def test_a_clone_to_run_recommended_trials_opens_with_them(
    page: Client, submit: Callable[..., Experiment], run: Callable[..., None], empty_redis: Redis
) -> None:
    original = submit(name="Original", repetitions=2)
    run(1)
    original.cancel()
    suggested = diagnosis_of(original).suggested
    draft = page.get(reverse("new"), {"from": original.slug, "next": "1"}).context["form"].draft
    assert draft["sweep"]["hosts"] == sorted(parameters["hosts"] for parameters, _ in suggested)
    assert draft["repetitions"] == suggested[0][1]


def test_a_clone_of_a_large_experiment_leaves_its_diagnosis_to_the_worker(
    page: Client,
    submit: Callable[..., Experiment],
    run: Callable[..., None],
    empty_redis: Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = submit(name="Original", repetitions=2)
    run(1)
    original.cancel()
    monkeypatch.setattr("dashboard.background.diagnoses.LARGE", 1)
    clone = {"from": original.slug, "next": "1"}
    assert page.get(reverse("new"), clone).status_code == 404
    assert cached_diagnosis(original)[0] is None
    suggested = diagnosis_of(original).suggested
    assert page.get(reverse("new"), clone).context["form"].draft["repetitions"] == suggested[0][1]


def test_a_clone_with_a_goal_adds_recommended_sizes_to_its_design(
    page: Client, submit: Callable[..., Experiment], run: Callable[..., None], empty_redis: Redis
) -> None:
    goal = {"until": "answered", "matters": 0.05, "budget": {"trials": 12}}
    original = submit(name="Original", repetitions=2, goal=goal)
    run(1)
    original.cancel()
    suggested = diagnosis_of(original).suggested
    draft = page.get(reverse("new"), {"from": original.slug, "next": "1"}).context["form"].draft
    assert draft["sweep"]["hosts"] == sorted({1, 2, 4}.union(parameters["hosts"] for parameters, _ in suggested))
    assert draft["goal"]["budget"] == {"trials": 12 + sum(count for _, count in suggested)}


@pytest.mark.parametrize("explores", [False, True])
def test_a_clone_to_run_recommended_trials_keeps_the_goal_and_the_sizes_of_its_question(
    page: Client, submit: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch, explores: bool
) -> None:
    goal = {"until": "answered", "matters": 0.05, "budget": {"trials": 12}}
    hosts = {"from": 1, "to": 4, "explore": True} if explores else [1, 2, 4]
    original = submit(name="Original", goal=goal, sweep={"hosts": hosts})
    suggested = SimpleNamespace(suggested=[({"hosts": 3}, 4)])
    monkeypatch.setattr("dashboard.pages.new.diagnosis_of", lambda _: suggested)
    draft = page.get(reverse("new"), {"from": original.slug, "next": "1"}).context["form"].draft
    larger = {**original.specification["goal"], "budget": {"trials": 16}}
    assert (draft["goal"], draft["repetitions"]) == (larger, original.specification["repetitions"])
    spec = parse(draft)
    assert (spec.explores, list(spec.values()["hosts"])) == (explores, [1, 2, 3, 4])
