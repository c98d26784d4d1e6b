"""Links from points of the explorer to exactly their trials."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from experiments.library import load_defaults
from experiments.models import Configuration, Experiment, Measurement, Project, Trial
from tests.dashboard.laboratory import laboratory_with, run_waiting, submitted

LISTED = re.compile(r'value="t:(\d+)"')
HOURS = 'say "two", \\ or so'


def measure(library: Project, person: User) -> None:
    """Two of one name, delays and MTUs, words with quotes, a missing value."""
    submitted(library, person, name="Plain", repetitions=3, warmups=1)
    submitted(library, person, name="Plain", sweep={"hosts": [2, 4]}, repetitions=2)
    wide = {"hosts": [2, 4], "link.delay": ["0 ms", "0.1 ms"], "link.mtu": [1500, 9000]}
    submitted(library, person, name="Wide", sweep=wide, repetitions=2, tags=["night"])
    submitted(library, person, name="Sites", sweep={"hosts": [2, 4], "link.topology": ["one site", "two sites"]})
    run_waiting()
    flagged, without = Trial.objects.filter(configuration__hosts=4).order_by("-pk")[:2]
    Trial.objects.filter(pk=flagged.pk).update(trust="unusable")
    Measurement.objects.filter(trial=without, metric="packets").delete()
    for superseded in (True, False):  # to update the summary
        Trial.objects.filter(pk=without.pk).update(superseded=superseded)
    for number, configuration in enumerate(Configuration.objects.filter(experiment__slug="wide").order_by("pk")):
        configuration.parameters |= {"said": HOURS if number % 2 else "a, b"}
        configuration.save()
    sent = Trial.objects.filter(experiment__slug="plain", configuration__hosts=2, kind="measured", repetition__lt=3)
    Measurement.objects.bulk_create(Measurement(trial=t, metric="packets", scope="mpi", value=9) for t in sent)
    connection.check_constraints()


LABORATORY = laboratory_with(measure)


@pytest.fixture
def library(db: None) -> Project:
    LABORATORY.restore()
    return load_defaults()


@pytest.fixture
def person(library: Project) -> User:
    return User.objects.get(username="okafor")


def points(page: Client, query: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Return the number of trials of every point of panels, and its address."""
    charts = page.get("/explore/", {"project": "default", "colour": "", **query}).context["charts"]
    assert charts
    for chart in charts:
        for trace in (trace for trace in chart.figure["data"] if "of" in trace):
            for at, data in enumerate(trace["customdata"]):
                if data is None:
                    assert trace["of"][at] == ""
                    continue
                assert re.fullmatch(r"[0-9a-f]{10}", trace["of"][at])
                address = trace["addresses"][at] if trace["leads"] else ""
                yield data[2], trace["leads"].replace("*", address) if address else ""


def listed(page: Client, address: str) -> list[int]:
    return [int(pk) for pk in LISTED.findall(page.get(address, follow=True).content.decode())]


POOLED = {"statistic": "median"}


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"text": "wide", "x": "link.mtu", "colour": "hosts", "facet": "link.delay"},
        {"y": "packets", "tag": "night", "state": "finished", "where": "hosts = 4"},
        {"y": "elapsed_s", "x": "packets", "colour": "experiment"},
        POOLED,
        POOLED | {"y": "packets"},
        POOLED | {"x": "link.topology", "colour": "hosts"},
        POOLED | {"x": "link.delay", "colour": "link.mtu", "facet": "hosts", "text": "Wide"},
        POOLED | {"x": "said", "text": "wide"},
        POOLED | {"x": "ranks", "where": "hosts > 1 or elapsed_s < 1, link.mtu = 1500"},
        {"statistic": "mean", "x": "cluster", "colour": "workload", "facet": "project"},
        POOLED | {"colour": "experiment", "text": "wide"},
        {"y": "packets", "scope": "mpi"},
        POOLED | {"y": "packets", "scope": "mpi", "where": "packets < 10"},
        POOLED | {"workload": ["water", "pingpong"], "colour": "workload"},
    ],
)
def test_points_link_to_exactly_their_trials(page: Client, query: dict[str, Any]) -> None:
    links = list(points(page, query))
    assert links
    for n, address in links:
        assert address, "every point of these leads somewhere"
        assert len(listed(page, address)) == n, address


def test_pooled_points_of_true_and_one_share_no_link(page: Client, library: Project) -> None:
    wide = list(Configuration.objects.filter(experiment__slug="wide").order_by("pk"))
    for number, configuration in enumerate(wide):
        configuration.parameters |= {"flag": (True, 1, 2)[number % 3]}
        configuration.save()
    addresses = sorted(address for _, address in points(page, POOLED | {"x": "flag", "text": "wide"}))
    assert addresses[:2] == ["", ""]
    assert len(listed(page, addresses[2])) == 2 * len(wide[2::3])


@pytest.mark.parametrize(
    "query",
    [
        POOLED | {"tag": "night"},
        POOLED | {"after": "2020-01-01"},
        POOLED | {"workload": ["water", "pingpong"]},
        POOLED | {"colour": "link.congestion_control"},
        POOLED | {"where": "link.mtu = 1500" + " " * 950 + ", hosts > 1", "facet": "link.topology"},
    ],
)
def test_points_without_exact_filters_have_no_link(page: Client, query: dict[str, Any]) -> None:
    assert {address for _, address in points(page, query)} == {""}


@pytest.mark.parametrize("statistic", ["each", "median"])
def test_experiments_of_one_name_have_a_colour_and_a_link_each(page: Client, statistic: str) -> None:
    slugs = dict(Experiment.objects.filter(published=False).values_list("slug", "name"))
    twice = {slug for slug, name in slugs.items() if list(slugs.values()).count(name) > 1}
    assert twice
    query = {"statistic": statistic, "colour": "experiment", "where": "hosts = 2", "project": "default"}
    charts = page.get("/explore/", query).context["charts"]
    marks = [trace for chart in charts for trace in chart.figure["data"] if trace.get("showlegend") is not False]
    by_name = {trace["name"]: trace["marker"]["color"] for trace in marks if "of" in trace}
    assert {slug if slug in twice else name[:30] for slug, name in slugs.items()} == {name[:30] for name in by_name}
    assert len(set(by_name.values())) == len(by_name)
    assert all(address for _, address in points(page, query))


def test_what_is_marked_together_differs_in_the_panel_alone(page: Client) -> None:
    params = {"project": "default", "text": "sites", "x": "molecules", "colour": "hosts", "facet": "link.topology"}
    for statistic in ("each", "median"):
        charts = page.get("/explore/", params | {"statistic": statistic}).context["charts"]
        first, second = ([trace for trace in chart.figure["data"] if "of" in trace] for chart in charts)
        for one, other in zip(first, second, strict=True):
            assert [key for key in one["of"] if key] == [key for key in other["of"] if key]
        assert set(first[0]["of"]).isdisjoint({*first[1]["of"]} - {""})


def test_short_url_of_a_configuration_keeps_its_filters(page: Client) -> None:
    configuration = Configuration.objects.filter(experiment__slug="plain").latest("pk")
    to = page.get(
        f"/configurations/{configuration.pk}/trials/", {"counted": "packets", "scope": "all", "owner": "me"}
    ).url
    query = {"experiment": ["plain"], "configuration": [configuration.hash], "counted": ["packets"], "scope": ["all"]}
    assert parse_qs(urlsplit(to).query) == query
    assert Experiment.objects.filter(slug="plain").exists()
