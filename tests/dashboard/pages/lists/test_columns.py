"""Columns of lists by the query string, on pages and in saved views."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from lxml import html

from experiments.models import Experiment, Project, SavedView
from tests.dashboard.histories_measured import LEVEL, measure


def headers(client: Client, address: str, **sent: str) -> list[str]:
    """Return the columns after the tick box and the name."""
    document = html.fromstring(client.get(address, headers=sent).content.decode())
    cells = document.xpath("//table[@data-rows]//th")[2:]
    return [" ".join(cell.text_content().split()).rstrip(" ↓↑") for cell in cells]


@pytest.mark.parametrize(
    ("address", "columns", "usual", "named"),
    [
        (
            "/experiments/",
            "columns=owner&columns=state&columns=nonsense",
            ["Sweep", "Elapsed over sweep", "State", "Trials", "Date"],
            ["State", "Owner"],
        ),
        (
            "/history/",
            "columns=range,nonsense&columns=cluster",
            ["Status", "Cluster", "Trials", "Elapsed time, latest level", "Last step", "Newest"],
            ["Cluster", "95 % of further trials"],
        ),
    ],
)
def test_list_shows_the_named_columns(
    page: Client, library: Project, person: User, address: str, columns: str, usual: list[str], named: list[str]
) -> None:
    measure(library, person, "Steady", LEVEL)
    assert headers(page, address) == usual
    assert headers(page, f"{address}?columns=nonsense") == usual
    assert headers(page, f"{address}?{columns}") == named
    assert headers(page, f"{address}?{columns}", **{"HX-Request": "true"}) == named


def test_history_columns_show_the_range_of_further_trials(page: Client, library: Project, person: User) -> None:
    measure(library, person, "Steady", LEVEL)
    document = html.fromstring(page.get("/history/?columns=range,cluster").content.decode())
    (row,) = document.xpath("//main//table/tbody/tr")
    cells = [" ".join(cell.text_content().split()) for cell in row.xpath("td")[2:]]
    # Without the newest of 12: 2.004 s, and 2.228 (Student's t, 10 degrees of freedom) times 3.32 ms times the root of 12/11.
    assert cells == ["Virtual test-bed", "1.996s to 2.011s"]
    assert document.xpath("//input[@name='columns'][@checked]/@value") == ["cluster", "range"]


def test_other_pages_and_views_keep_the_columns(page: Client, submit: Callable[..., Experiment]) -> None:
    for number in range(26):
        submit(name=f"Study {number}", repetitions=1, sweep={"hosts": [1]})
    assert "columns=project&amp;page=2" in page.get("/experiments/?columns=project").content.decode()
    page.post("/views/", {"page": "experiments", "name": "By project", "query": "columns=project"})
    assert "columns=project" in SavedView.objects.get().query
