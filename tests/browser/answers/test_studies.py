"""Maps of result parts in a browser."""

import pytest
from playwright.sync_api import expect

from experiments.models import Project
from experiments.models.people.project import DEFAULT_PROJECT
from tests.dashboard.studies_measured import READERS, measured, read


@pytest.fixture
def laboratory(person) -> Project:
    return Project.objects.get(slug=DEFAULT_PROJECT)


def test_it_writes_values_of_a_map_over_numbers_into_their_cells(page, laboratory, page_errors):
    page.goto(f"{measured(laboratory, READERS, read).get_absolute_url()}?tab=charts")
    panel = page.locator("#c-map-1-1")
    expect(panel.locator(".annotation")).to_have_count(6)
    cells = panel.locator(".heatmaplayer image").bounding_box()
    notes = [panel.locator(".annotation").nth(i).bounding_box() for i in range(6)]
    places = sorted((box["x"] + box["width"] / 2 - cells["x"]) / cells["width"] for box in notes)
    # Three columns of two rows: the middles of thirds.
    assert [round(6 * position) for position in places] == [1, 1, 3, 3, 5, 5]
    assert page_errors == []
