"""The list of histories has the columns that its address asks for, on every page of it, in a saved view and after a change."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from lxml import html

from experiments.models import Project
from tests.dashboard.histories_measured import LEVEL, measure

USUAL = ["Status", "Cluster", "Hosts", "Trials", "Elapsed time, latest level", "Last step", "Newest"]


@pytest.fixture(autouse=True)
def measured(library: Project, person: User) -> None:
    measure(library, person, "Steady", LEVEL)


def heads(client: Client, address: str, **headers: str) -> list[str]:
    """The columns after the tick box and the configuration."""
    document = html.fromstring(client.get(address, headers=headers).content.decode())
    return [
        " ".join(each.text_content().split()).rstrip(" ↓↑") for each in document.xpath("//table[@data-rows]//th")[2:]
    ]


def test_it_shows_the_columns_that_are_asked_for(page: Client) -> None:
    assert heads(page, "/history/") == USUAL
    assert heads(page, "/history/?columns=nonsense") == USUAL
    asked = "/history/?columns=range,nonsense&columns=cluster"
    assert heads(page, asked) == ["Cluster", "95 % of further trials"]
    assert heads(page, asked, **{"HX-Request": "true"}) == ["Cluster", "95 % of further trials"]
    document = html.fromstring(page.get(asked).content.decode())
    (row,) = document.xpath("//main//table/tbody/tr")
    cells = [" ".join(cell.text_content().split()) for cell in row.xpath("td")[2:]]
    # 2.004 s, and 2.201 (Student's t, 11 degrees of freedom) times 3.41 ms times the root of 13/12 to either side.
    assert cells == ["Virtual test-bed", "1.996s to 2.012s"]
    assert document.xpath("//input[@name='columns'][@checked]/@value") == ["cluster", "range"]
