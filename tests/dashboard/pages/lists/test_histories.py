"""The list of histories: order, flags and marks."""

import re

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from experiments.library import load_defaults
from experiments.models import ExpectedChange, Experiment, Project
from experiments.selectors.history import expect, history_of
from tests.dashboard.api.clients import client_of
from tests.dashboard.histories_measured import LEVEL, STEP, measure
from tests.dashboard.laboratory import laboratory_with
from tests.dashboard.texts import text_of, undo_of
from tests.experiments import factories


def measure_three(library: Project, person: User) -> None:
    measure(library, person, "Steady", LEVEL)
    measure(library, person, "Stepped", STEP, link={"mtu": 9000})
    measure(library, person, "Short", LEVEL[:5], link={"mtu": 1400})


LABORATORY = laboratory_with(measure_three)


@pytest.fixture
def library(db) -> Project:
    LABORATORY.restore()
    return load_defaults()


@pytest.fixture
def person(library) -> User:
    return User.objects.get(username="okafor")


@pytest.fixture
def measured(person) -> list[Experiment]:
    return [Experiment.objects.get(slug=slug) for slug in ("steady", "stepped", "short")]


def rows(page, **query) -> list:
    return [row["kept"] for row in page.get(reverse("histories"), query).context["rows"]]


def test_list_has_histories_with_enough_trials_and_flags(measured, page):
    listed = rows(page)
    assert [(row.configuration.experiment.slug, row.history.flagged) for row in listed] == [
        ("stepped", True),
        ("steady", False),
    ]
    html = page.get(reverse("histories")).content.decode()
    assert html.count("Unexpected step") == 1
    data = [row["parameters"] for row in page.get(reverse("histories")).context["rows"]]
    assert all(re.match(r"\d+ hosts?, ", words) and "jitter" not in words for words in data)
    assert f'href="/history/{listed[0].configuration.hash}/testbed/"' in html


def test_it_judges_as_the_historys_own_page_does(measured, page, person):
    for row in rows(page):
        history = history_of(person, row.configuration.hash, "testbed", "elapsed_s").history
        assert [(c.index, c.ratio, c.p_value) for c in row.history.changes] == [
            (c.index, c.ratio, c.p_value) for c in history.changes
        ]
        assert (row.history.flagged, row.history.latest) == (history.flagged, history.latest)


def test_one_configuration_in_two_experiments_is_one_history(measured, library, person, page):
    measure(library, person, "Steady again", LEVEL[:3])
    (newest, _) = rows(page)
    assert (newest.configuration.experiment.slug, newest.trials, newest.experiments) == ("steady-again", 15, 2)


def test_it_filters_and_pages(measured, page, monkeypatch):
    assert [row.configuration.experiment.slug for row in rows(page, text="stead")] == ["steady"]
    assert rows(page, workload="hpl") == []
    assert rows(page, cluster="elsewhere") == []
    monkeypatch.setattr("dashboard.pages.lists.histories.PER_PAGE", 1)
    assert 'rel="next" href="/history/?page=2"' in page.get(reverse("histories")).content.decode()
    second = page.get(reverse("histories"), {"page": "2"})
    assert [row["kept"].configuration.experiment.slug for row in second.context["rows"]] == ["steady"]
    assert page.get(reverse("histories"), {"page": "many"}).status_code == 200


def test_filter_lists_only_flagged_histories(measured, page, person):
    assert [row.configuration.experiment.slug for row in rows(page, flagged="1")] == ["stepped"]
    assert rows(page, flagged="1", text="stead") == []
    html = page.get(reverse("histories"), {"flagged": "1"}).content.decode()
    assert re.search(r'<input type="checkbox" name="flagged"[^>]* value="1"[^>]* checked>', html)
    expect(measured[1].trials.order_by("ended_at")[6], "elapsed_s", "New kernel", person)
    assert rows(page, flagged="1") == []


def test_it_looks_for_flagged_ones_in_a_fixed_number_of_histories_a_page(measured, page, monkeypatch):
    monkeypatch.setattr("dashboard.pages.lists.histories.FLAGGED_PER_PAGE", 1)
    first = page.get(reverse("histories"), {"flagged": "1"})
    assert [row["kept"].configuration.experiment.slug for row in first.context["rows"]] == ["stepped"]
    assert 'rel="next" href="/history/?flagged=1&amp;page=2"' in first.content.decode()
    second = page.get(reverse("histories"), {"flagged": "1", "page": "2"})
    assert second.context["rows"] == []
    assert 'rel="prev" href="/history/?flagged=1&amp;page=1"' in second.content.decode()


def test_other_projects_are_hidden(measured, page):
    Experiment.objects.filter(pk=measured[1].pk).update(project=Project.objects.create(slug="theirs", name="Theirs"))
    assert [row.configuration.experiment.slug for row in rows(page)] == ["steady"]


def test_it_answers_the_page_with_a_fixed_number_of_queries(measured, library, person, page, django_assert_num_queries):
    with django_assert_num_queries(9):
        page.get(reverse("histories"))
    measure(library, person, "More", LEVEL, link={"mtu": 1200})
    with django_assert_num_queries(9):
        page.get(reverse("histories"))
    with django_assert_num_queries(9):
        page.get(reverse("histories"), {"flagged": "1"})


def test_it_gives_rest_the_same(measured, page, person):
    data = client_of(person).get("/api/v1/history/", {"limit": "1"}).json()
    (row,) = data["results"]
    assert data["more"]
    assert (row["flagged"], row["steps"], row["trials"]) == (True, 1, 12)
    assert row["last_step"]["ratio"] == pytest.approx(1.2, rel=0.01)
    assert client_of(person).get(f"/api/v1/history/{row['configuration']}/{row['cluster']}/").status_code == 200
    assert client_of(person).get("/api/v1/history/", {"flagged": "true", "text": "stead"}).json()["results"] == []
    assert len(client_of(person).get("/api/v1/history/", {"flagged": "true"}).json()["results"]) == 1
    assert client_of(person).get("/api/v1/history/", {"workload": "fire"}).status_code == 400
    assert client_of(person).get("/api/v1/history/", {"limit": "ten"}).status_code == 400
    assert client_of(person).get("/api/v1/history/", {"metric": "packets"}).status_code == 400


def slugs(page, **query) -> list[str]:
    return [row.configuration.experiment.slug for row in rows(page, **query)]


def test_it_is_sorted_by_its_columns(measured, library, person, page):
    measure(library, person, "Wide and long", LEVEL + LEVEL[:3], sweep={"hosts": [4]})
    assert slugs(page) == ["wide-and-long", "stepped", "steady"]
    assert slugs(page, ordering="newest") == ["steady", "stepped", "wide-and-long"]
    assert slugs(page, ordering="-hosts") == ["wide-and-long", "stepped", "steady"]
    assert slugs(page, ordering="hosts") == ["stepped", "steady", "wide-and-long"]
    assert slugs(page, ordering="-trials")[0] == "wide-and-long"
    assert slugs(page, ordering="workload", text="stead") == ["steady"]
    html = page.get(reverse("histories"), {"ordering": "-trials", "text": "e"}).content.decode()
    assert 'href="?text=e&amp;ordering=trials"' in html
    assert html.count('aria-sort="descending"') == 1
    query = {"ordering": "-hosts", "limit": "1"}
    assert client_of(person).get("/api/v1/history/", query).json()["results"][0]["parameters"]["hosts"] == 4
    assert client_of(person).get("/api/v1/history/", {"ordering": "size"}).status_code == 400


EXPECTED = "/history/chosen/expected/"


def ticked(page) -> list[str]:
    """Return the values of the checkboxes in the list."""
    return re.findall(r'value="(c:\d+)"', page.get(reverse("histories")).content.decode())


def test_last_steps_of_ticked_ones_are_marked_as_expected_and_back(measured, page, person):
    of = ticked(page)
    data = text_of(page.get(EXPECTED, {"of": of}))
    assert data.count("It has no step.") == 1
    unsaid = page.post(EXPECTED, {"of": of, "reason": " "})
    assert (unsaid.status_code, ExpectedChange.objects.count()) == (422, 0)
    back = page.post(EXPECTED, {"of": of, "reason": "New kernel", "back": "workload=water&columns=standing"})
    assert back.url == "/history/?workload=water&columns=standing"
    mark = ExpectedChange.objects.get()
    assert (mark.trial, mark.reason, mark.author) == (measured[1].trials.order_by("ended_at")[6], "New kernel", person)
    undo, fields = undo_of(page.get(back.url).content.decode())
    page.post(undo, fields)
    assert not ExpectedChange.objects.exists()
    assert slugs(page, flagged="1") == ["stepped"]


def test_histories_of_others_are_not_marked(measured, page, client):
    of = ticked(page)
    for kind, data in (("viewer", "submitters and maintainers"), (None, "2 do not exist")):
        client.force_login(factories.person(f"some-{kind}", kind) if kind else factories.person("eve"))
        assert data in text_of(client.get(EXPECTED, {"of": of}))
        client.post(EXPECTED, {"of": of, "reason": "mine"})
    assert not ExpectedChange.objects.exists()


def test_list_names_what_differs_and_a_newest_trial_off_its_baseline(library, person, page):
    for molecules, seconds in ((216, LEVEL), (512, [*LEVEL, 9.0])):
        measure(library, person, f"Water {molecules}", seconds, parameters={"molecules": molecules, "steps": 50})
    rows = {row["differing"]: row["status"] for row in page.get(reverse("histories")).context["rows"]}
    assert {
        "2 hosts, molecules 216": "",
        "2 hosts, molecules 512": "Newest trial above baseline",
    }.items() <= rows.items()
