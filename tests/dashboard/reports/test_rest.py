"""REST: reports are listed, read, created and revised; errors have path and line."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from experiments.models import Experiment, Report

ADDRESS = "/api/v1/reports/"
JSON: dict[str, Any] = {"content_type": "application/json"}


def test_it_makes_reads_and_revises_a_report(page: Client, experiment: Experiment) -> None:
    text = f"Words\r\n\r\n{{{{ table {experiment.slug} trials frozen }}}}\r\n"
    made = page.post(ADDRESS, {"title": "A", "text": text}, **JSON)
    assert made.status_code == 201
    report = Report.objects.get()
    assert made["Location"].endswith(f"{ADDRESS}{report.pk}/")
    assert list(report.current.frozen) == [f"table {experiment.slug} trials"]
    changed = page.put(made["Location"], {"version": 1, "text": "Other", "note": "Shorter"}, **JSON)
    assert changed.status_code == 200
    stored = page.get(made["Location"]).json()
    assert (stored["title"], stored["version"], stored["text_version"], stored["text"]) == ("A", 2, 2, "Other")
    assert [(version["number"], version["note"], version["author"]) for version in stored["versions"]] == [
        (2, "Shorter", "okafor"),
        (1, "", "okafor"),
    ]
    assert page.get(f"{made['Location']}?version=1").json()["text"] == text.replace("\r\n", "\n")
    assert page.get(f"{made['Location']}?version=3").status_code == 404
    assert page.get(f"{made['Location']}?version=x").json()["errors"][0]["path"] == "version"


def test_it_does_not_overwrite_a_newer_version(page: Client, report: Report) -> None:
    address = f"{ADDRESS}{report.pk}/"
    assert page.put(address, {"version": 1, "text": "One"}, **JSON).status_code == 200
    again = page.put(address, {"version": 1, "text": "Two"}, **JSON)
    assert again.status_code == 409
    assert report.versions.latest("number").text == "One"


@pytest.mark.parametrize(
    ("body", "path", "line"),
    [
        ({"title": "A", "text": "a\n{{ graph x }}"}, "text", 2),
        ({"title": "A", "text": "a\n\n{{ answer nowhere }}"}, "text", 3),
        ({"title": "", "text": "a"}, "title", None),
        ({"title": "A"}, "text", None),
        ({"title": "A", "text": "a", "project": "elsewhere"}, "project", None),
    ],
)
def test_errors_have_path_and_line(page: Client, body: dict[str, str], path: str, line: int | None) -> None:
    answer = page.post(ADDRESS, body, **JSON)
    assert answer.status_code == 400
    error = answer.json()["errors"][0]
    assert (error["path"], error.get("line")) == (path, line)
    assert not Report.objects.exists()


def test_it_shares_a_report(page: Client, report: Report, experiment: Experiment) -> None:
    made = page.post("/api/v1/shares/", {"report": report.pk}, **JSON).json()
    assert (made["report"], made["experiments"]) == (report.pk, [experiment.slug])
    assert Client().get(made["address"], follow=True).redirect_chain[-1][0] == f"/reports/{report.pk}/"
    assert page.post("/api/v1/shares/", {"report": 0}, **JSON).status_code == 400
