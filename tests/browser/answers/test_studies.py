"""The pages of studies in a browser: parts arrive after the page, draw their charts, and take the reader's targets."""

import re

import pytest
from playwright.sync_api import expect

from experiments.models import Cluster, Project
from experiments.models.people.project import DEFAULT_PROJECT
from tests.dashboard.studies_measured import LADDER, READERS, measured, read, solve


@pytest.fixture
def laboratory(person) -> Project:
    return Project.objects.get(slug=DEFAULT_PROJECT)


def test_it_writes_values_of_a_map_over_numbers_into_their_cells(page, laboratory, page_errors):
    page.goto(measured(laboratory, READERS, read).get_absolute_url())
    panel = page.locator("#c-map-1-1")
    expect(panel.locator(".annotation")).to_have_count(6)
    cells = panel.locator(".heatmaplayer image").bounding_box()
    notes = [panel.locator(".annotation").nth(i).bounding_box() for i in range(6)]
    places = sorted((box["x"] + box["width"] / 2 - cells["x"]) / cells["width"] for box in notes)
    # Three columns of two rows: the middles of thirds.
    assert [round(6 * place) for place in places] == [1, 1, 3, 3, 5, 5]
    assert page_errors == []


def test_it_takes_facts_and_compares_the_rate_with_them(page, laboratory, page_errors):
    experiment = measured(laboratory, LADDER, solve)
    page.goto(experiment.get_absolute_url())
    page.get_by_role("link", name="Enter its facts").click()
    page.get_by_label("Hosts").fill("2")
    page.get_by_label("Cores per host").fill("1")
    page.get_by_label("Clock").fill("1 GHz")
    page.get_by_label("Operations per cycle").fill("4")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text(re.compile(r"8\s+GFLOP/s"))).to_be_visible()
    assert Cluster.objects.get(slug="testbed").facts["clock_hz"] == 1e9
    page.goto(experiment.get_absolute_url())
    expect(page.locator("#parts").get_by_text(re.compile(r"theoretical peak 8\s+GFLOP/s"))).to_be_visible()
    assert page_errors == []
