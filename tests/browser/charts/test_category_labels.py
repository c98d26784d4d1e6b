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
        const covers = (box, other) => box.left < other.right - 0.5 && box.top < other.bottom - 2 && other.top < box.bottom - 2;
        return boxes.flatMap((box, k) => boxes.slice(0, k).filter(other => covers(box, other))).map(() => plot.dataset.figure);
    })"""
REDRAWN = """async categories => {
    const plot = [...document.querySelectorAll(".plot.js-plotly-plot")].find(plot => plot.offsetParent);
    const source = document.getElementById(plot.dataset.figure), figure = JSON.parse(source.textContent);
    figure.data = [{ type: "bar", x: categories, y: categories.map((_, k) => k + 1) }];
    figure.layout.xaxis = { type: "category", title: { text: "Category" } };
    source.textContent = JSON.stringify(figure);
    plot.scrollIntoView();
    plot.dispatchEvent(new CustomEvent("rankwire:figure", { bubbles: true }));
    await new Promise(done => setTimeout(done, 500));
    return [...plot.querySelectorAll(".xaxislayer-above .xtick text")].map(label => {
        const lines = [...label.querySelectorAll("tspan.line")].map(line => line.textContent);
        return lines.length ? lines.join("\\n") : label.textContent;
    });
}"""
"""Draw bars of these categories in the first chart, and return the labels of its axis."""
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


@pytest.mark.parametrize("count", [3, 12, 40])
def test_numbers_of_many_categories_are_left_out_and_words_stay(page: Page, count: int) -> None:
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto("/experiments/york-staging/?tab=charts")
    page.wait_for_function(DRAWN)
    sizes = [f"{2**k} B" for k in range(count)]
    labels = [label.strip() for label in page.evaluate(REDRAWN, sizes)]
    assert set(labels) <= set(sizes)
    assert labels[0] == "1 B"
    assert (len(labels) == count) == (count < 40)
    assert page.evaluate(SLANTED) == []
    assert page.evaluate(OVERLAP) == []
    settings = [f"{hosts} hosts, grid size {size}" for hosts in (1, 2, 4) for size in (128, 512)]
    assert [label.replace("\n", " ") for label in page.evaluate(REDRAWN, settings)] == settings
    assert page.evaluate(SLANTED) == []


def test_labels_wrap_anew_when_the_window_narrows(page: Page) -> None:
    page.goto("/experiments/york-staging/?tab=charts")
    page.wait_for_function(DRAWN)
    page.set_viewport_size({"width": 390, "height": 900})
    page.wait_for_timeout(1500)  # the theme waits until the window rests
    page.wait_for_function(DRAWN)
    assert page.evaluate(SLANTED) == []
