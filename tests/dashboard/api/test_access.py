"""REST: authentication and roles."""

from __future__ import annotations

import pytest
from django.test import Client

from dashboard.api import validate
from experiments.models import Project
from tests.dashboard.api.clients import EXPERIMENTS, TRIALS, client_of
from tests.experiments import factories
from tests.experiments.specifications import written
from tests.kept_rows import PUBLISHED_STUDIES

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "address", ["", "experiments/", "experiments/water/", "trials/", "trials/1/", "schema/", "no/"]
)
def test_it_is_closed_to_strangers(address: str) -> None:
    answer = Client().get(f"/api/v1/{address}")
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.headers["Content-Type"] == "application/problem+json"
    message = "Authentication credentials were not provided."
    assert answer.json() == {
        "type": "about:blank",
        "title": "Unauthorized",
        "status": 401,
        "detail": message,
        "errors": [{"path": "", "message": message}],
    }


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Bearer rw_wrong", "bearer \xff", "Bearer a b c"])
def test_it_refuses_a_wrong_token(header: str) -> None:
    answer = Client().get(EXPERIMENTS, headers={"Authorization": header})
    assert answer.status_code == 401
    assert "token" in answer.json()["errors"][0]["message"]


def test_it_refuses_tokens_of_inactive_users_and_passwords() -> None:
    user = factories.person("ada", "viewer")
    client = client_of(user)
    assert client.get(EXPERIMENTS).status_code == 200
    user.is_active = False
    user.save()
    assert client.get(EXPERIMENTS).status_code == 401
    assert Client().get(EXPERIMENTS, headers={"Authorization": "Basic YWRhOnNlY3JldA=="}).status_code == 401


def test_it_takes_the_browsers_session_but_then_asks_for_the_csrf_token() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(factories.person("ada", "submitter"))
    assert client.get(EXPERIMENTS).status_code == 200
    answer = client.post(EXPERIMENTS, written(), content_type="application/json")
    assert answer.status_code == 403
    assert "CSRF" in answer.json()["errors"][0]["message"]


def test_lists_show_only_visible_objects() -> None:
    PUBLISHED_STUDIES.restore()
    mine = factories.experiment(owner=factories.person("owner"))
    trial = mine.trials.first()
    assert trial is not None
    member, stranger = client_of(factories.person("ada", "viewer")), client_of(factories.person("eve"))
    for address in (f"{EXPERIMENTS}{mine.slug}/", f"{EXPERIMENTS}{mine.slug}/result/", f"{TRIALS}{trial.pk}/"):
        assert member.get(address).status_code == 200
        assert stranger.get(address).status_code == 404
    assert mine.slug in {e["slug"] for e in member.get(EXPERIMENTS).json()["results"]}
    assert all(e["published"] for e in stranger.get(EXPERIMENTS).json()["results"])
    assert stranger.get(TRIALS, {"experiment": mine.slug}).json()["count"] == 0
    assert stranger.post(f"{EXPERIMENTS}{mine.slug}/cancel/").status_code == 404
    assert stranger.post(f"{TRIALS}{trial.pk}/cancel/").status_code == 404


def test_permission_is_checked_before_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "parse", lambda *_, **__: pytest.fail("read before the role was judged"))
    client = client_of(factories.person("ada", "viewer"))
    assert client.post(EXPERIMENTS, written(), content_type="application/json").status_code == 403


def test_it_refuses_other_projects_without_telling_whether_they_exist() -> None:
    Project.objects.create(slug="secret", name="Secret")
    client = client_of(factories.person("ada", "submitter"))
    answers = [
        client.post(f"{EXPERIMENTS}?project={slug}", written(), content_type="application/json")
        for slug in ("secret", "absent")
    ]
    assert [answer.status_code for answer in answers] == [403, 403]
    messages = [answer.json()["errors"][0]["message"] for answer in answers]
    assert messages[0].replace("secret", "absent") == messages[1]


@pytest.mark.parametrize(
    ("role", "is_own", "status"),
    [("viewer", True, 403), ("submitter", True, 200), ("submitter", False, 403), ("maintainer", False, 200)],
)
def test_it_lets_owners_and_maintainers_cancel(role: str, is_own: bool, status: int) -> None:
    user = factories.person("ada", role)
    experiment = factories.experiment(owner=user if is_own else factories.person("bob"))
    trial = experiment.trials.order_by("position").first()
    assert trial is not None
    one = client_of(user).post(f"{TRIALS}{trial.pk}/cancel/")
    rest = client_of(user).post(f"{EXPERIMENTS}{experiment.slug}/cancel/")
    assert (one.status_code, rest.status_code) == (status, status)
    if status == 200:
        assert (one.json(), rest.json()) == ({"cancelled": 1}, {"cancelled": 3})
    assert experiment.trials.filter(state="cancelled").count() == (4 if status == 200 else 0)
