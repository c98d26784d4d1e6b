"""API tokens: shown once, stored as a hash."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core import serializers
from django.core.management import CommandError, call_command
from django.utils import timezone

from experiments.models import ApiToken, Project
from tests.experiments import factories

pytestmark = pytest.mark.django_db


def test_it_stores_only_the_hash_of_the_key() -> None:
    token, key = ApiToken.issue(factories.person("ada"), "laptop")
    assert key.startswith("rw_")
    assert len(key) > 40
    stored = serializers.serialize("json", ApiToken.objects.all())
    assert key not in stored
    assert key[9:] not in stored
    assert str(token) == f"laptop ({key[:8]}…)"


def test_it_is_found_by_its_key_alone() -> None:
    user = factories.person("ada")
    _, key = ApiToken.issue(user, "laptop")
    token = ApiToken.find(key)
    assert token is not None
    assert token.user == user
    for wrong in ("", "rw_", key[:-1], key + "x", key.upper(), "\0", key[3:]):
        assert ApiToken.find(wrong) is None


def test_find_returns_no_token_that_expired_or_whose_user_is_inactive() -> None:
    user = factories.person("ada")
    token, key = ApiToken.issue(user, "laptop", days=30)
    assert ApiToken.find(key) == token
    user.is_active = False
    user.save()
    assert ApiToken.find(key) is None
    user.is_active = True
    user.save()
    ApiToken.objects.update(expires_at=timezone.now())
    assert ApiToken.find(key) is None


def test_it_notes_its_use_once_a_day() -> None:
    token, key = ApiToken.issue(factories.person("ada"), "laptop")
    ApiToken.find(key)
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    ApiToken.find(key)
    token.refresh_from_db()
    assert token.last_used_at == first
    ApiToken.objects.update(last_used_at=timezone.now() - timedelta(days=2))
    ApiToken.find(key)
    token.refresh_from_db()
    assert token.last_used_at is not None
    assert token.last_used_at >= first


def test_it_ends_with_the_password_of_its_owner_alone() -> None:
    user, other = factories.person("ada"), factories.person("bob")
    (_, key), (_, of_other) = ApiToken.issue(user, "laptop"), ApiToken.issue(other, "laptop")
    user.set_password("another")
    user.save()
    assert ApiToken.find(key) is None
    assert ApiToken.find(of_other) is not None


def test_it_outlives_a_password_that_is_only_stored_anew(settings: Any) -> None:
    user = factories.person("ada")
    _, key = ApiToken.issue(user, "laptop")
    hashers = "django.contrib.auth.hashers"
    settings.PASSWORD_HASHERS = [f"{hashers}.PBKDF2PasswordHasher", f"{hashers}.MD5PasswordHasher"]
    before = user.password
    assert user.check_password("secret")
    user.refresh_from_db()
    assert user.password != before
    assert ApiToken.find(key) is not None


def test_it_is_made_with_limits_by_the_command() -> None:
    user = factories.person("ada")
    project, printed = Project.objects.create(slug="optics", name="Optics"), StringIO()
    call_command("api_token", "ada", "ci", "--scope=submit", "--project=optics", "--days=30", stdout=printed)
    token = ApiToken.find(printed.getvalue().strip())
    assert token is not None
    assert (token.user, token.name, token.scope, token.project) == (user, "ci", "submit", project)
    assert token.expires_at is not None
    assert timedelta(days=29) < token.expires_at - timezone.now() <= timedelta(days=30)


@pytest.mark.parametrize("option", ["--days=0", "--days=366", "--project=absent", "--scope=admin"])
def test_it_is_not_made_with_limits_that_do_not_exist(option: str) -> None:
    factories.person("ada")
    with pytest.raises(CommandError):
        call_command("api_token", "ada", "ci", option)
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(("user", "name"), [("nobody", "laptop"), ("ada", ""), ("ada", "x" * 81)])
def test_it_is_made_for_active_users_and_has_a_name(user: str, name: str) -> None:
    factories.person("ada")
    with pytest.raises(CommandError):
        call_command("api_token", user, name)
    assert not ApiToken.objects.exists()
