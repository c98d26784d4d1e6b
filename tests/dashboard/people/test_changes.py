"""The log of changes, for maintainers of a project and superusers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from auditlog.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.people.change_rows import changed_fields, with_words
from dashboard.requests.lookup import MOST_WORDS
from experiments.models import ApiToken, Cluster, Experiment, NoticeChoices, Program, Project, Report, ShareLink
from experiments.models.changes import note
from experiments.models.people import accounts
from tests.dashboard.api.clients import client_of
from tests.dashboard.texts import text_of
from tests.experiments import factories

CHANGES = "/api/v1/changes/"


def log_of(api: Client, **filters: str) -> list[tuple[Any, ...]]:
    rows = api.get(CHANGES, filters).json()["results"]
    return [(row["who"], row["kind"], row["action"], row["changes"]) for row in rows]


@pytest.fixture
def maintainer(library: Project) -> Any:
    return factories.person("mia", "maintainer")


def test_a_change_of_a_role_is_logged_with_its_author(maintainer: Any, person: User, library: Project) -> None:
    browser = Client()
    browser.force_login(maintainer)
    member = person.memberships.get()
    browser.post(f"/projects/{library.slug}/members/{member.pk}/", {"role": "viewer"})
    row = log_of(client_of(maintainer), project=library.slug)[0]
    assert row == ("mia", "membership", "changed", {"role": ["submitter", "viewer"]})
    text = browser.get(f"/projects/{library.slug}/changes/").content.decode()
    assert "mia" in text
    assert "okafor" in text


def test_changes_by_a_token_are_logged_with_its_owner(maintainer: Any, submit: Callable[..., Experiment]) -> None:
    experiment = submit()
    api = client_of(maintainer)
    api.post(f"/api/v1/experiments/{experiment.slug}/cancel/")
    assert log_of(api, project="default")[0] == ("mia", "experiment", "changed", {"cancelled trials": ["", "6"]})


def test_trials_and_their_results_are_not_logged(submit: Callable[..., Experiment], run: Callable[..., None]) -> None:
    submit()
    before = LogEntry.objects.count()
    run()
    assert LogEntry.objects.count() == before


def test_another_project_is_not_ones_own(maintainer: Any, submit: Callable[..., Experiment]) -> None:
    Project.objects.create(slug="optics", name="Optics")
    api = client_of(maintainer)
    assert api.get(CHANGES).status_code == 403
    assert api.get(CHANGES, {"project": "optics"}).status_code == 404
    assert client_of(factories.person("sam", "submitter")).get(CHANGES, {"project": "default"}).status_code == 403


def test_a_superuser_sees_everything_but_no_secret(db: None) -> None:
    admin = factories.person("root", is_superuser=True)
    token, key = ApiToken.issue(admin, "laptop")
    admin.set_password("another")
    admin.save()
    answer = client_of(admin).get(CHANGES).content.decode()
    assert '"password":["hidden","hidden"]' in answer.replace(" ", "")
    for secret in (token.digest, admin.password, key):
        assert secret not in answer


def test_a_changed_setting_of_a_cluster_is_named_with_its_values(library: Project) -> None:
    root = Client()
    root.force_login(factories.person("root", is_superuser=True))
    many = dict.fromkeys(("A", "B", "C"), "x" * 100)
    rack = Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings={"hosts": ["n1"], "environment": many})
    rack.set_up(name="Rack", settings={"hosts": ["n1"], "environment": many, "key": "/srv/new"}, enabled=False)
    rack.set_up(name="Rack", settings=rack.settings | {"offloads": "off"}, enabled=False)
    log = root.get("/changes/").context["rows"]
    assert log[0]["fields"] == [("Offloads", "not set", "off while trials run")]
    fields = log[1]["fields"]
    assert ("Private key", "not set", "/srv/new") in fields
    assert sorted(label for label, _, _ in fields) == ["Private key", "accepts experiments"]
    rack.set_up(
        name="Rack", settings=rack.settings | {"hosts": ["n1", "n2"], "environment": {**many, "B": "y"}}, enabled=False
    )
    rack.describe({"clock_hz": 3e9, "offloads": "off"})
    rows = root.get("/changes/").context["rows"][:2]
    assert [row["address"] for row in rows] == ["/clusters/rack/", "/clusters/rack/"]
    fields = [field for row in rows for field in row["fields"]]
    assert ("Offloads", "not set", "off") in fields, "a fact has no choices"
    assert ("Hosts", "n1", "n1, n2") in fields
    assert ("environment: B", "x" * 100, "y") in fields
    assert ("Clock", "not set", "3 GHz") in fields


def test_changed_fields_have_the_words_of_the_pages(library: Project) -> None:
    root = factories.person("root", is_superuser=True)
    browser = Client()
    browser.force_login(root)
    factories.person("boss", is_superuser=True, is_staff=True)
    boss = User.objects.get(username="boss")
    accounts.end_superuser(boss)
    accounts.close_account(boss)
    library.most_queued_trials = 10
    library.save()
    fields = [field for row in browser.get("/changes/").context["rows"] for field in row["fields"]]
    for field in (
        ("active", "yes", "no"),
        ("superuser", "yes", "no"),
        ("access to /admin/", "yes", "no"),
        ("quota of queued trials", "not set", "10"),
    ):
        assert field in fields


def test_changes_list_first_values_checks_and_the_part_that_differs(library: Project, empty_redis: object) -> None:
    root = factories.person("root", is_superuser=True)
    browser = Client()
    browser.force_login(root)
    rack = Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings={"hosts": ["n1"]})
    browser.post("/clusters/rack/test/")
    description = "the same long text of the program before the word that differs: "
    definition = {"name": "solver", "program": ["/opt/solver"], "summary": f"{description}one"}
    Program.register(definition)
    Program.register({**definition, "summary": f"{description}two"})
    rack.switch(on=False)
    NoticeChoices.mark_seen(root, 1)
    rows = browser.get("/changes/").context["rows"]
    switched, changed, _, checked, created = rows[:5]
    assert switched["fields"] == [("accepts experiments", "yes", "no")]
    [(label, before, after)] = changed["fields"]
    assert (label, before[-3:], after[-3:], before[0]) == ("summary", "one", "two", "…")
    assert len(after) < 30
    assert checked["fields"] == [("check", "", "requested")]
    assert {("name", "", "Rack"), ("Hosts", "", "n1"), ("accepts experiments", "", "yes")} <= set(created["fields"])
    assert not [row for row in rows if row["kind"] == "mails"]


def test_a_new_cluster_lists_its_fields_alone(db: None) -> None:
    cluster = Cluster.objects.create(slug="rack", name="Rack", kind="local")
    created = LogEntry.objects.get_for_object(cluster).get()
    assert {"trials", "experiments"} <= set(created.changes_dict)
    rows = changed_fields(created)
    assert "Rack" in [after for label, _, after in rows if label == "name"]
    assert not [after for _, _, after in rows if after.endswith(".None")]


def test_changes_are_found_by_what_changed_and_until_a_day(library: Project) -> None:
    browser = Client()
    browser.force_login(factories.person("root", is_superuser=True))
    library.most_queued_trials = 10
    library.save()
    (row,) = browser.get("/changes/", {"q": "quota"}).context["rows"]
    assert row["fields"] == [("quota of queued trials", "not set", "10")]
    accounts.make_superuser(factories.person("ada"))
    row = browser.get("/changes/", {"q": "access superuser ada"}).context["rows"][0]
    assert ("access to /admin/", "no", "yes") in row["fields"]
    assert browser.get("/changes/", {"q": "quota", "until": "2020-01-01"}).context["rows"] == []
    assert browser.get("/changes/", {"q": "quota", "until": "soon"}).context["rows"]


def test_changes_are_sentences(library: Project, submit: Callable[..., Experiment]) -> None:
    """Each thing is named once, and each field says what became of it."""
    root = factories.person("root", is_superuser=True)
    browser = Client()
    browser.force_login(root)
    ShareLink.issue([submit()], by=root, days=7)
    for quota in (10, 20, None):
        library.most_queued_trials = quota
        library.save()
    boss = factories.person("boss", is_superuser=True)
    boss.set_password("another")
    boss.save()
    accounts.end_superuser(User.objects.get(username="boss"))
    rows = browser.get("/changes/").context["rows"]
    words = [sentence for row in rows for sentence in row["words"]]
    assert "superuser changed from yes to no" in words
    assert "password changed" in words
    quotas = [sentence for sentence in words if sentence.startswith("quota of queued trials")]
    assert quotas == [
        "quota of queued trials removed, was 20",
        "quota of queued trials changed from 10 to 20",
        "quota of queued trials set to 10",
    ]
    [(kind, name)] = [(row["kind"], row["name"]) for row in rows if row["kind"] == "share link"]
    assert f"{kind} {name}".count("share link") == 1


def test_changes_are_found_by_words(library: Project) -> None:
    browser = Client()
    browser.force_login(factories.person("root", is_superuser=True))
    factories.person("ada", "viewer")
    factories.person("mia", "viewer")
    for words, names in (("ada", {"ada"}), ("MEMBER mia", {"mia is viewer of Laboratory"}), ("nothing", set())):
        answer = browser.get("/changes/", {"q": words})
        assert names <= {row["entry"].object_repr for row in answer.context["rows"]}
        assert all(words.split()[-1] in row["entry"].object_repr for row in answer.context["rows"])
    [address] = re.findall(r'href="([^"]+)"\s*>Changes as JSON', text_of(answer))
    assert len(browser.get(address.replace("&amp;", "&")).json()["results"]) > 1


def test_the_search_of_the_log_uses_a_limited_number_of_words(db: None) -> None:
    words = " ".join(["word"] * MOST_WORDS)
    assert str(with_words(LogEntry.objects.all(), f"{words} more").query) == str(
        with_words(LogEntry.objects.all(), words).query
    )


def test_actions_without_a_value_and_times_of_entries_are_not_changed_values(
    library: Project, submit: Callable[..., Experiment]
) -> None:
    root = factories.person("root", is_superuser=True)
    browser = Client()
    browser.force_login(root)
    experiment = submit()
    note(experiment, "paused rounds", "")
    report = Report.objects.create(project=library, title="Findings", owner=root)
    report.title, report.changed_at = "Results", timezone.now()
    report.save()
    changed, _, paused = browser.get("/changes/").context["rows"][:3]
    assert [label for label, _, _ in changed["fields"]] == ["title"]
    assert (paused["words"], paused["address"]) == (["paused rounds"], experiment.get_absolute_url())
