"""The comparison of an experiment with the published study that it repeats."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from experiments.library import load_defaults
from tests.dashboard.studies_measured import measured

SPECIFICATION = {"name": "Mini", "workload": "water", "sweep": {"hosts": [2, 4]}, "repetitions": 2}


@pytest.fixture
def address(person) -> str:
    experiment = measured(
        load_defaults(),
        SPECIFICATION,
        lambda parameters: {"elapsed_s": 4.0 / parameters["hosts"], "packets": 1e5 * parameters["hosts"], "cpu_s": 3.0},
    )
    return f"/compare/?of=e:{experiment.slug},e:guster-2007-water"


def test_it_answers_before_it_draws_and_folds_what_one_side_has(
    page: Page, address: str, page_errors: list[str]
) -> None:
    page.goto(address)
    expect(page.locator(".plot .main-svg").first).to_be_visible()
    tops = [page.locator(at).bounding_box() for at in ("#verdict", "#charts", "#metrics", "#configuration")]
    assert all(tops)
    places = [box["y"] for box in tops if box]
    assert places == sorted(places)
    fold = page.locator("details", has_text="Not measured on both sides")
    expect(fold.get_by_role("row", name="CPU time s")).to_be_hidden()
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(fold.get_by_role("row", name="CPU time s")).to_be_visible()
    assert page_errors == []


def test_search_shows_rows_by_name_and_differences_only(page: Page, address: str, page_errors: list[str]) -> None:
    page.goto(address)
    rows = page.locator("#metrics tbody tr:visible, #configuration tbody tr:visible, #environment tbody tr:visible")
    search = page.get_by_role("searchbox", name="Find a setting, fact or metric")
    before = rows.count()
    search.fill("cpu rank")
    expect(page.get_by_role("row", name="CPU time per rank")).to_be_visible()
    assert {"cpu" in text.lower() for text in rows.locator("th").all_inner_texts()} == {True}
    expect(page.locator("#environment")).to_be_hidden()
    search.fill("nothing of this name")
    expect(rows).to_have_count(0)
    expect(page.locator("#metrics")).to_be_hidden()
    expect(page.locator("#find output")).to_contain_text("no setting, fact or metric at this point has this name")
    expect(page.locator("section[id^='c-']:visible")).to_have_count(0)
    search.fill("lap")  # not within "elapsed"
    expect(page.get_by_role("row", name="Elapsed time")).to_be_hidden()
    search.fill("")
    expect(rows).to_have_count(before)
    page.get_by_label("Differences only").check()
    expect(
        page.locator("#metrics tbody tr[data-same]:visible, #configuration tbody tr[data-same]:visible")
    ).to_have_count(0)
    expect(page.locator("#configuration .differs").first).to_be_visible()
    assert page_errors == []


def test_common_points_are_cells_of_one_size_on_a_phone(page: Page, person) -> None:
    library = load_defaults()
    swept = {**SPECIFICATION, "sweep": {"link.bandwidth": ["100 Mbit/s", "1 Gbit/s"], "link.delay": ["0 ms", "1 ms"]}}
    runs = [measured(library, {**swept, "name": name}, lambda _: {"elapsed_s": 2.0}) for name in ("P", "Q")]
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/compare/?of={','.join(f'e:{run.slug}' for run in runs)}")
    points = page.get_by_role("navigation", name="Common points").get_by_role("link")
    expect(points).to_have_count(4)
    boxes = [box for point in points.all() if (box := point.bounding_box())]
    assert len({round(box["width"]) for box in boxes}) == 1
    assert all(box["x"] + box["width"] <= 390 for box in boxes)
    assert len({round(box["y"]) for box in boxes}) == 2
