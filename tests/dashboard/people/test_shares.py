"""A share link opens one experiment or comparison for reading."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from lxml import html

from experiments import deletion
from experiments.models import Experiment, ShareLink
from tests.experiments import factories


@pytest.fixture
def experiment(submit: Callable[..., Experiment], run: Callable[..., None]) -> Experiment:
    experiment = submit()
    run()
    return experiment


def link_on(page: Client, address: str, days: str = "7") -> str:
    answer = page.post(address, {"days": days})
    link = re.search(r"http://testserver(/shared/[\w-]{20,}/)", answer.content.decode())
    assert link is not None
    return link[1]


@pytest.fixture
def link(page: Client, experiment: Experiment) -> str:
    return link_on(page, f"/experiments/{experiment.slug}/share/")


def test_a_link_shows_the_experiment_and_its_trials_without_an_account(link: str, experiment: Experiment) -> None:
    visitor = Client()
    answer = visitor.get(link, follow=True)
    assert answer.redirect_chain[-1][0] == experiment.get_absolute_url()
    assert experiment.name in answer.content.decode()
    assert answer["X-Robots-Tag"] == "noindex, nofollow"
    for offered in ("Sign out", "Clone", "experiment-edit", 'id="repeat-dialog"'):
        assert offered not in answer.content.decode()
    trial = experiment.trials.latest("pk")
    for part in (f"/experiments/{experiment.slug}/parts/", f"/trials/{trial.pk}/", f"/trials/{trial.pk}/environment/"):
        assert visitor.get(part).status_code == 200, part


def hidden_links(visitor: Client, address: str) -> set[str]:
    """Return links of the page that visitors cannot open."""
    page = html.fromstring(visitor.get(address).content.decode())
    page.make_links_absolute(f"http://testserver{address}")
    linked = {link.partition("#")[0] for link in page.xpath("//a/@href") if link.startswith("http://testserver/")}
    return {link for link in linked - {"http://testserver/sign-in/"} if visitor.get(link).status_code != 200}


def test_no_link_leads_a_visitor_to_a_hidden_page(
    page: Client, link: str, experiment: Experiment, submit: Callable[..., Experiment], run: Callable[..., None]
) -> None:
    another = submit(name="Another")
    run()
    compared = f"/compare/?of=e:{experiment.slug},e:{another.slug}"
    visitor = Client()
    visitor.get(link)
    shared = visitor.get(link_on(page, compared.replace("/compare/", "/compare/share/")))["Location"]
    tabs = [f"{experiment.get_absolute_url()}?tab={tab}" for tab in ("", "charts", "configurations", "setup")]
    for address in (*tabs, experiment.trials.latest("pk").get_absolute_url(), shared):
        assert visitor.get(address).status_code == 200, address
        assert hidden_links(visitor, address) == set(), address


def test_it_opens_nothing_else(link: str, experiment: Experiment, submit: Callable[..., Experiment]) -> None:
    another, published = submit(name="Another"), Experiment.objects.filter(published=True).latest("pk")
    visitor = Client()
    visitor.get(link)
    assert visitor.get(another.get_absolute_url()).status_code == 404
    assert visitor.get(published.get_absolute_url()).status_code == 404
    assert visitor.get(f"/trials/{another.trials.latest('pk').pk}/").status_code == 404
    for closed in ("/", "/experiments/", "/explore/", f"/compare/?of=e:{experiment.slug}", "/account/"):
        assert visitor.get(closed).status_code == 302, closed
    assert visitor.get(f"/api/v1/experiments/{experiment.slug}/").status_code == 401
    assert visitor.post(f"/experiments/{experiment.slug}/cancel/").status_code == 302


@pytest.mark.parametrize("way", ["over", "ended", "maker gone"])
def test_it_opens_nothing_after_its_end_even_to_who_came_before(
    page: Client, link: str, experiment: Experiment, person: User, way: str
) -> None:
    visitor = Client()
    visitor.get(link)
    if way == "over":
        ShareLink.objects.update(expires_at=timezone.now())
    elif way == "ended":
        page.post(f"/shares/{ShareLink.objects.get().pk}/end/")
    else:
        person.is_active = False
        person.save()
    assert visitor.get(experiment.get_absolute_url()).status_code == 302
    answer = Client().get(link)
    assert answer.status_code == 404


def test_a_link_also_works_for_signed_in_users(link: str, experiment: Experiment) -> None:
    stranger = Client()
    stranger.force_login(factories.person("eve"))
    assert stranger.get(experiment.get_absolute_url()).status_code == 404
    stranger.get(link)
    assert stranger.get(experiment.get_absolute_url()).status_code == 200
    assert stranger.get(f"/experiments/{experiment.slug}/edit/").status_code == 404
    assert experiment.name not in stranger.get("/experiments/").content.decode()


def test_viewers_make_none_and_only_makers_and_maintainers_end_them(
    page: Client, link: str, experiment: Experiment, person: User
) -> None:
    end = f"/shares/{ShareLink.objects.get().pk}/end/"
    others: dict[str, Any] = {}
    for role in ("viewer", "submitter", "maintainer"):
        others[role] = Client()
        others[role].force_login(factories.person(role, role))
    assert others["viewer"].post(f"/experiments/{experiment.slug}/share/", {"days": "7"}).status_code == 403
    assert [others[role].post(end).status_code for role in others] == [404, 404, 302]
    assert not ShareLink.objects.exists()


def test_it_shows_a_comparison_exactly_as_it_was_shared(
    page: Client, experiment: Experiment, submit: Callable[..., Experiment], run: Callable[..., None]
) -> None:
    another = submit(name="Another")
    run()
    query = f"of=e%3A{experiment.slug}%2Ce%3A{another.slug}"
    visitor = Client()
    answer = visitor.get(link_on(page, f"/compare/share/?{query}"), follow=True)
    assert answer.status_code == 200
    assert "Another" in answer.content.decode()
    assert visitor.get(experiment.get_absolute_url()).status_code == 302
    assert visitor.get(f"/compare/?{query}&at=1").status_code == 302


def test_a_member_who_became_a_viewer_revokes_links_and_creates_none(
    page: Client, person: User, link: str, experiment: Experiment
) -> None:
    person.memberships.update(role="viewer")
    address = f"/experiments/{experiment.slug}/share/"
    assert page.get(experiment.get_absolute_url()).context["may_share"]
    context = page.get(address).context
    (stored,) = context["links"]
    assert (stored.made_by, context["may_create"]) == (person, False)
    assert page.post(address, {"days": "7"}).status_code == 403
    page.post(reverse("share-end", args=[stored.pk]))
    assert not experiment.share_links.exists()
    assert page.get(address).status_code == 403


def test_a_link_ends_with_its_experiment_and_returns_with_it(
    page: Client, link: str, experiment: Experiment, person: User
) -> None:
    number = ShareLink.objects.get().pk
    deleted = deletion.delete(experiment, by=person)
    assert Client().get(link).status_code == 404
    assert page.get("/api/v1/shares/").status_code == 200
    deletion.restore_deleted(deleted)
    assert Client().get(link).status_code == 302
    deletion.delete(Experiment.objects.get(slug=experiment.slug), by=person)
    assert page.post(f"/shares/{number}/end/").status_code == 302
    assert not ShareLink.objects.exists()
