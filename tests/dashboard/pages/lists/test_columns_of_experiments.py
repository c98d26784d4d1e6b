"""The list of experiments has the columns that its address asks for, on every page of it and in a saved view."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client
from lxml import html

from experiments.models import Experiment, SavedView


def heads(client: Client, address: str) -> list[str]:
    """The columns after the tick box and the name."""
    document = html.fromstring(client.get(address).content.decode())
    return [" ".join(each.text_content().split()).rstrip(" ↓") for each in document.xpath("//main//table//th")[2:]]


def test_it_shows_the_columns_that_are_asked_for(page: Client, submit: Callable[..., Experiment]) -> None:
    submit(name="Alpha")
    assert heads(page, "/experiments/") == ["Sweep", "Elapsed over sweep", "State", "Trials", "Date"]
    asked = "/experiments/?columns=owner&columns=state&columns=nonsense"
    assert heads(page, asked) == ["State", "Owner"]
    row = html.fromstring(page.get(f"{asked}&source=own").content.decode()).xpath("//main//table/tbody/tr")[0]
    assert "okafor" in row.text_content()
    assert heads(page, "/experiments/?columns=nonsense") == heads(page, "/experiments/")


def test_other_pages_and_views_keep_them(page: Client, submit: Callable[..., Experiment]) -> None:
    for number in range(26):
        submit(name=f"Study {number}", repetitions=1, sweep={"hosts": [1]})
    shown = page.get("/experiments/?columns=project").content.decode()
    assert "columns=project&amp;page=2" in shown
    page.post("/views/", {"page": "experiments", "name": "By project", "query": "columns=project"})
    assert "columns=project" in SavedView.objects.get().query
