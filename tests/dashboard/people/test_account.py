"""The account page: roles, and tokens that are shown once."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.library import PUBLISHED_PROJECT
from experiments.models import ApiToken, Project
from tests.experiments import factories

WANTED = {"name": "laptop", "scope": "submit", "project": "", "days": "30"}


def test_the_account_page_shows_name_and_roles(page: Client) -> None:
    text = page.get("/account/").content.decode()
    assert "okafor" in text
    assert re.search(r"Submitter of <b>\w+", text)


def test_no_token_is_offered_for_published_results_alone(page: Client, person: User) -> None:
    person.is_superuser = True
    person.save()
    Project.objects.get_or_create(slug=PUBLISHED_PROJECT, defaults={"name": "Published"})
    projects = page.get("/account/").context["form"].fields["project"].queryset
    assert not projects.filter(slug=PUBLISHED_PROJECT).exists()


def test_it_shows_a_new_key_once(page: Client, person: User) -> None:
    answer = page.post("/account/tokens/", WANTED)
    key = re.search(r"rw_[\w-]{40,}", answer.content.decode())
    assert key is not None
    token = ApiToken.find(key[0])
    assert token is not None
    assert (token.user, token.name, token.scope, token.project) == (person, "laptop", "submit", None)
    assert answer["Cache-Control"] == "private, no-store"
    assert 'data-copy="key"' in answer.content.decode()
    again = page.get("/account/").content.decode()
    assert "read and submit</td>" in again
    assert "laptop" in again
    assert key[0] not in again


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"name": "x" * 81}, {"scope": "all"}, {"days": "0"}, {"days": "366"}, {"project": "secret"}]
)
def test_it_makes_no_token_of_what_cannot_be(page: Client, wrong: dict[str, str]) -> None:
    Project.objects.create(slug="secret", name="Secret")
    answer = page.post("/account/tokens/", {**WANTED, **wrong})
    assert answer.status_code == 422
    assert not ApiToken.objects.exists()


def test_it_ends_ones_own_tokens_alone(page: Client, person: User) -> None:
    mine, _ = ApiToken.issue(person, "mine")
    other, _ = ApiToken.issue(factories.person("ada"), "other")
    assert page.post(f"/account/tokens/{other.pk}/end/").status_code == 404
    assert page.post(f"/account/tokens/{mine.pk}/end/").status_code == 302
    assert list(ApiToken.objects.all()) == [other]


def test_ids_of_the_page_are_unique(page: Client) -> None:
    ids = re.findall(r'\sid="([^"]+)"', page.get("/account/").content.decode())
    assert [name for name, count in Counter(ids).items() if count > 1] == []
