"""The list of trials: filters, order, pages and permissions."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from analysis.catalogue import METRICS
from experiments.models import Measurement, Trial
from tests.dashboard.texts import text_of
from tests.experiments import factories

ADDRESS = "/trials/"


def listed(page: Client, **query: Any) -> list[int]:
    """The numbers of the trials in the order of the page."""
    return [int(number) for number in re.findall(r'value="t:(\d+)"', page.get(ADDRESS, query).content.decode())]


def numbers(**query: Any) -> list[int]:
    return sorted(Trial.objects.filter(**query).values_list("pk", flat=True), reverse=True)


def position_of(value: object) -> str:
    """Return a forged position in the list."""
    return base64.urlsafe_b64encode(json.dumps([value, 1]).encode()).decode().rstrip("=")


def walk(page: Client, monkeypatch: pytest.MonkeyPatch, **query: str) -> list[int]:
    """Return all listed rows, by *Next* and by *Previous*, once they are equal."""
    monkeypatch.setattr("dashboard.pages.lists.trials.PER_PAGE", 4)
    seen: list[list[int]] = []
    position: Mapping[str, str] = {}
    for _ in range(20):
        context = page.get(ADDRESS, {**query, **position}).context
        seen.append([trial.pk for trial in context["page"].rows])
        if not context["page"].later:
            break
        position = {"after": context["page"].later}
    backwards = [seen[-1]]
    while context["page"].earlier:
        context = page.get(ADDRESS, {**query, "before": context["page"].earlier}).context
        backwards.insert(0, [trial.pk for trial in context["page"].rows])
    assert backwards == seen
    return [pk for rows in seen for pk in rows]


def test_it_is_in_the_header_and_lists_the_newest_first(page: Client, submit: Any, run: Any) -> None:
    experiment = submit()
    run()
    assert 'href="/trials/"' in text_of(page.get(reverse("home")))
    assert listed(page, experiment=experiment.slug) == numbers(experiment=experiment)
    text = text_of(page.get(ADDRESS, {"experiment": experiment.slug}))
    assert "2.142" in text  # elapsed time of the first repetition on two hosts, seconds


def test_list_has_only_visible_trials(client: Client, submit: Any) -> None:
    submit()
    client.force_login(factories.person("eve"))
    assert listed(client) != []
    assert {trial.experiment.published for trial in Trial.objects.filter(pk__in=listed(client))} == {True}


def test_every_order_leads_through_all_of_them_and_back(
    page: Client, submit: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(name="Alpha"), submit(name="Beta")
    run(most=8)  # the rest has neither an end nor a value
    trials = {
        t.pk: t for t in Trial.objects.filter(cluster__slug="testbed").select_related("configuration", "experiment")
    }
    elapsed = dict(Measurement.objects.filter(trial__in=trials, metric="elapsed_s").values_list("trial", "value"))
    values: dict[str, Callable[[int], Any]] = {
        "id": lambda pk: pk,
        "hosts": lambda pk: trials[pk].configuration.hosts,
        "experiment": lambda pk: trials[pk].experiment.name,
        "ended": lambda pk: trials[pk].ended_at,
        "elapsed_s": elapsed.get,
    }
    for sort in [f"{sign}{name}" for name in values for sign in ("", "-")]:
        listed_values = walk(page, monkeypatch, sort=sort, cluster="testbed")
        assert sorted(listed_values) == sorted(trials), sort
        data = [values[sort.lstrip("-")](pk) for pk in listed_values]
        present = [row for row in data if row is not None]
        assert present == sorted(present, reverse=sort.startswith("-")), sort
        assert data[len(present) :] == [None] * (len(data) - len(present)), f"{sort}: what has no value comes last"


def test_the_address_keeps_filters_columns_and_order(page: Client, submit: Any, run: Any) -> None:
    submit()
    run()
    html = page.get(
        ADDRESS, {"q": "water", "owner": "okafor", "columns": "packets,elapsed_s", "sort": "-packets"}
    ).content.decode()
    assert "?q=water&amp;owner=okafor&amp;columns=packets,elapsed_s&amp;sort=packets" in html
    assert 'aria-sort="descending"' in html
    assert html.count("data-name=") == 2 * 9


def test_invalid_query_strings_are_refused(page: Client) -> None:
    for query, words in (
        ({"columns": "speed"}, "is not a metric"),
        ({"columns": ",".join(list(METRICS)[:13])}, "at most 12 metrics"),
        ({"sort": "speed"}, "is neither a metric nor one of"),
        ({"after": "nowhere"}, "There is no such page"),
        ({"after": "WzEsIDFd", "before": "WzEsIDFd"}, "not both"),
        ({"sort": "ended", "after": "WzEsIDFd"}, "There is no such page"),
        ({"sort": "experiment", "after": position_of("\ud800")}, "There is no such page"),
        ({"sort": "ended", "after": position_of("9999-12-31T23:59:59-23:59")}, "There is no such page"),
    ):
        response = page.get(ADDRESS, query)
        assert response.status_code == 400, query
        assert words in response.content.decode(), query
    far = {"sort": "ended", "after": position_of("2026-01-01T00:00:00+23:59")}
    assert page.get(ADDRESS, far).status_code == 200, "an offset that Python knows and PostgreSQL does not"


def test_it_costs_the_same_queries_whatever_it_lists(
    page: Client, submit: Any, run: Any, django_assert_num_queries: Any
) -> None:
    submit()
    run(most=3)
    query = {"sort": "-elapsed_s"}
    page.get(ADDRESS, query)
    with django_assert_num_queries(11):
        page.get(ADDRESS, query)
    submit(name="More", repetitions=4)
    run()
    with django_assert_num_queries(11):
        page.get(ADDRESS, query)
