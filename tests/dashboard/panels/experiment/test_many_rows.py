"""Experiments with many configurations: paged tables that state what is hidden."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from dashboard.panels.experiment.tables import MOST_ROWS, MOST_SQUARES, Slice
from dashboard.states import chip_of
from experiments.models import Experiment, State
from tests.experiments import factories

POINTS, REPETITIONS = 150, 8
pytestmark = pytest.mark.django_db


@pytest.fixture
def many() -> Experiment:
    sizes = [1024 * size for size in range(1, POINTS + 1)]
    return factories.experiment(
        workload="pingpong", parameters={"hosts": 2}, sweep={"message_bytes": sizes}, repetitions=REPETITIONS
    )


@pytest.fixture
def reader(client: Client) -> Client:
    client.force_login(factories.person("admin", is_superuser=True))
    return client


def rows(page: str) -> int:
    return len(re.findall(r"<tr\s[^>]*data-of=", page))


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def test_it_shows_the_first_page_and_how_many_there_are(reader: Client, many: Experiment) -> None:
    page = reader.get(many.get_absolute_url()).content.decode()
    assert rows(page) == MOST_ROWS
    assert "Configurations 1 to 50 of 150" in words(page)
    assert f"?tab=configurations&amp;from={MOST_ROWS + 1}" in page
    assert f"/trials/?experiment={many.slug}" in page


def test_what_runs_keeps_the_page_that_is_open(reader: Client, many: Experiment) -> None:
    live = reader.get(f"{many.get_absolute_url()}live/", {"seen": "7", "from": 101}).content.decode()
    assert rows(live) == MOST_ROWS
    assert "&amp;from=101" in live
    idle = reader.get(f"{many.get_absolute_url()}live/", {"seen": "0", "from": 101}).content.decode()
    assert "&amp;from=101" in idle


def test_trials_that_wait_are_a_number_and_the_others_squares(reader: Client, many: Experiment) -> None:
    failed = many.trials.filter(configuration__position=0).earliest("pk")
    many.trials.filter(pk=failed.pk).update(state=State.FAILED, message="no memory")
    page = reader.get(many.get_absolute_url()).content.decode()
    assert MOST_ROWS * REPETITIONS > MOST_SQUARES
    assert page.count(f'<a class="bad" href="/trials/{failed.pk}/"') == 1
    assert len(re.findall(r'<a class="\w+" href="/trials/\d+/" title=', page)) == 1
    assert f"7 {chip_of('queued').word.lower()}" in words(page)
    assert f"/configurations/{failed.configuration_id}/trials/" in page


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("", 1, 50),
        ("1", 1, 50),
        ("51", 51, 100),
        ("150", 101, 150),
        ("151", 1, 50),
        ("0", 1, 50),
        ("-4", 1, 50),
        ("9" * 40, 1, 50),
        ("x", 1, 50),
    ],
)
def test_an_address_asks_for_a_row(query: str, first: int, last: int) -> None:
    page = Slice.of(query, POINTS)
    assert (page.first, page.last) == (first, last)
