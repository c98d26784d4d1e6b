"""Isolation of users: counts, views and names in charts."""

from __future__ import annotations

import json
import re

import pytest
from django.urls import reverse

from dashboard.templatetags.rankwire import figure
from experiments.models import Experiment, Project, SavedView
from experiments.specification import parse
from tests.dashboard.laboratory import specification
from tests.experiments import factories


def test_workloads_page_counts_only_visible_experiments(page, submit) -> None:
    submit()
    hidden = Project.objects.create(slug="hidden", name="Hidden")
    Experiment.submit(parse(specification(name="Secret plan")), project=hidden)
    rows = page.get(reverse("workloads")).context["rows"]
    assert {row["workload"].slug: row["experiments"] for row in rows if row["experiments"]} == {"water": 1}


def test_slugs_reveal_no_experiments_of_other_projects(page, submit) -> None:
    hidden = Project.objects.create(slug="hidden", name="Hidden")
    foreign = [Experiment.submit(parse(specification(name=name)), project=hidden).slug for name in ("Plan", "Plan")]
    assert [submit(name=name).slug for name in ("Plan", "Hidden Plan", "Plan")] == ["plan", "hidden-plan", "plan-2"]
    assert foreign == ["hidden--plan", "hidden--plan-2"]


def test_the_many_shared_views_of_one_person_hide_no_others(page, person) -> None:
    for name, count in (("ada", 20), ("bo", 1)):
        owner = factories.person(name)
        SavedView.objects.bulk_create(
            SavedView(name=f"{name} {number:02}", owner=owner, shared=True) for number in range(count)
        )
    SavedView.objects.create(name="zz mine", owner=person)
    names = [row.view.name for row in page.get("/explore/").context["views"].rows]
    assert names[:3] == ["zz mine", "ada 00", "bo 00"]
    assert len(names) == 12


@pytest.mark.parametrize(
    "name", ["<b>bold</b>", '<a href="https://example.org">here</a>', "<br>", "a < b", "</script><script>"]
)
def test_a_name_in_a_chart_is_text(name: str) -> None:
    written = figure({"data": [{"name": name, "hovertemplate": f"%{{y}}<extra>{name}</extra>"}], "layout": {}})
    assert "<" not in written
    [trace] = json.loads(written)["data"]
    assert trace["name"] == name.replace("<", "&lt;")
    assert re.findall(r"<[^>]*>", trace["hovertemplate"]) == ["<extra>", "</extra>"]
