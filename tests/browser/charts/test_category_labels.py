"""Labels of categories are read without turning the head, on phones too."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

from experiments.models import Project
from experiments.models.people.project import DEFAULT_PROJECT
from tests.dashboard.studies_measured import measured

DRAWN = '() => [...document.querySelectorAll(".plot[data-figure]")].every(plot => !plot.offsetParent || plot.data)'
SLANTED = """() => [...document.querySelectorAll(".plot.js-plotly-plot")]
    .filter(plot => plot.offsetParent)
    .flatMap(plot => [...plot.querySelectorAll(".xaxislayer-above .xtick text")]
        .filter(label => /rotate\\((?!0[,)])/.test(label.getAttribute("transform") || ""))
        .map(label => `${plot.dataset.figure}: ${label.textContent}`))"""
OVERLAP = """() => [...document.querySelectorAll(".plot.js-plotly-plot")]
    .filter(plot => plot.offsetParent)
    .flatMap(plot => {
        const boxes = [...plot.querySelectorAll(".xaxislayer-above .xtick text")].map(label => label.getBoundingClientRect())
            .filter(box => box.width).sort((a, b) => a.left - b.left);
        return boxes.slice(1).filter((box, k) => box.left < boxes[k].right - 0.5).map(() => plot.dataset.figure);
    })"""
METHODS = {
    "name": "Staging by method",
    "workload": "data-staging",
    "sweep": {"staging": ["pull", "multicast", "tree"], "hosts": [2, 3, 4]},
    "repetitions": 2,
}
pytestmark = pytest.mark.timeout(180)


def values(parameters: dict[str, Any]) -> dict[str, float]:
    factor = {"pull": 3.0, "multicast": 1.0, "tree": 1.5}[parameters["staging"]]
    return {"elapsed_s": factor * parameters["hosts"], "cpu_mean_rank_s": 0.4 * factor}


@pytest.mark.parametrize("width", [390, 1440])
def test_labels_of_categories_are_level_and_apart(page: Page, width: int, page_errors: list[str]) -> None:
    staging = measured(Project.objects.get(slug=DEFAULT_PROJECT), METHODS, values)
    page.set_viewport_size({"width": width, "height": 900})
    for slug in (staging.slug, "york-staging", "eadline-2006-hpl", "guster-2007-water"):
        for tab in ("answer", "charts"):
            page.goto(f"/experiments/{slug}/?tab={tab}")
            page.wait_for_function(DRAWN)
            assert page.evaluate(SLANTED) == [], (slug, tab)
            assert page.evaluate(OVERLAP) == [], (slug, tab)
    assert page_errors == []


def test_labels_wrap_anew_when_the_window_narrows(page: Page) -> None:
    page.goto("/experiments/york-staging/?tab=charts")
    page.wait_for_function(DRAWN)
    page.set_viewport_size({"width": 390, "height": 900})
    page.wait_for_timeout(1500)  # the theme waits until the window rests
    page.wait_for_function(DRAWN)
    assert page.evaluate(SLANTED) == []
