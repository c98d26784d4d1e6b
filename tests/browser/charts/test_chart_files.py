"""Charts as files: image or numbers, with title, object, date and address."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from experiments.models import Experiment

STUDY = "guster-2007-water"


@pytest.fixture
def panel(page: Page) -> Locator:
    page.goto(f"/experiments/{STUDY}/")
    locator = page.locator("#c-time")
    expect(locator.locator(".scatterlayer .trace")).to_have_count(4)
    return locator


def saved(panel: Locator, button: str) -> Path:
    panel.locator('summary[aria-label="Save chart"]').click()
    with panel.page.expect_download() as waited:
        panel.get_by_role("button", name=button).click()
    assert waited.value.suggested_filename.endswith(f".{button[:3].lower()}")
    return Path(waited.value.path())


def test_its_numbers_are_those_that_it_draws(panel: Locator, page_errors: list[str]) -> None:
    lines = saved(panel, "CSV").read_text().splitlines()
    drawn = panel.locator(".plot").evaluate(
        "e => e.data.filter(d => d.hoverinfo !== 'skip').map(d => [d.name, [...d.x], [...d.y]])"
    )
    head, body = (
        [line for line in lines if line.startswith("# ")],
        [line for line in lines if not line.startswith("# ")],
    )
    assert head[1] == f"# {Experiment.objects.get(slug=STUDY).name}"
    assert head[-1].endswith(f"/experiments/{STUDY}/#c-time")
    rows = list(csv.reader(body))
    assert rows[0][0] == "series"
    assert "(s)" in rows[0][2]
    expected = [(name, x, y) for name, xs, ys in drawn for x, y in zip(xs, ys, strict=True) if x is not None]
    assert [(row[0], float(row[1]), float(row[2])) for row in rows[1:]] == [
        (n, float(x), float(y)) for n, x, y in expected
    ]
    assert page_errors == []


def test_its_picture_says_what_it_shows(panel: Locator, page_errors: list[str]) -> None:
    drawing = saved(panel, "SVG").read_text()
    assert Experiment.objects.get(slug=STUDY).name in drawing
    assert f"/experiments/{STUDY}/#c-time" in drawing
    assert saved(panel, "PNG").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert page_errors == []
