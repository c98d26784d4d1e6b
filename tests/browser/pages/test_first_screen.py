"""Words of the first screen, panels and buttons of main pages."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import expect

from benchmarks.pages.contents import COUNT, counts_of
from experiments import workloads
from experiments.models import Experiment, Project
from experiments.models.people.project import DEFAULT_PROJECT
from tests.browser.accessibility import violations
from tests.dashboard.studies_measured import SIZES, measured

MOST_WORDS = 250


@pytest.fixture
def experiment(person) -> Experiment:
    """Best at two hosts: at four, ranks wait."""
    scatter = count()

    def values(parameters: Mapping[str, Any]) -> dict[str, float]:
        elapsed = {1: 8.0, 2: 4.5, 4: 6.5}[parameters["hosts"]] * (1 + 0.005 * (next(scatter) % 3))
        return {"elapsed_s": elapsed, "cpu_mean_rank_s": 7.0 / parameters["hosts"]}

    return measured(Project.objects.get(slug=DEFAULT_PROJECT), {**SIZES, "repetitions": 5}, values)


MAIN_PAGES = (
    *("", "experiments/", "experiments/{slug}/", "experiments/new/", "trials/", "trials/{trial}/", "history/"),
    *(
        "studies/",
        "reports/",
        "explore/",
        "compare/?of=e:{slug},e:guster-2007-water",
        "compare/?of=e:{slug}",
        "network/",
        "clusters/",
        "clusters/testbed/",
    ),
    *("clusters/testbed/facts/", "clusters/new/?kind=ssh", "workloads/", "workloads/new/", "help/", "help/terms/"),
    *("changes/", "account/", "projects/", "projects/default/", "people/", "tasks/", "quotas/", "server/"),
)
"""Main pages; with the page of each built-in workload, and of each published study."""


def words_of(page, path):
    page.goto(path)
    page.wait_for_load_state("networkidle")
    return page.evaluate(COUNT)["first"]


def test_first_screen_of_every_main_page_has_few_words(page, experiment):
    trial = experiment.trials.latest("pk").pk
    paths = [
        *(path.format(slug=experiment.slug, trial=trial) for path in MAIN_PAGES),
        *(f"workloads/{workload.slug}/" for workload in workloads.built_in()),
        *(f"experiments/{study.slug}/" for study in Experiment.objects.filter(published=True)),
    ]
    words = {path: words_of(page, f"/{path}") for path in paths}
    assert {path: count for path, count in words.items() if not 20 < count <= MOST_WORDS} == {}


def test_experiment_has_a_verdict_three_charts_and_one_fold(page, experiment, page_errors):
    page.goto("/")
    assert counts_of(page, experiment.get_absolute_url())["panels"] == 5
    assert 0 < page.locator("#answer .finds > li").count() <= 3
    expect(page.locator("#answer .js-plotly-plot")).to_have_count(3)
    buttons = page.locator(".head .acts :is(.btn, summary)").filter(visible=True)
    names = [text.strip() for text in buttons.all_inner_texts()]
    assert names == ["Clone experiment", "Compare", "Add repetitions", "More actions"]
    page.get_by_text("More actions").click()
    expect(page.get_by_role("link", name="Export bundle")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Export bundle")).to_be_hidden()
    expect(page.get_by_text("More actions")).to_be_focused()
    page.locator("#more-findings summary").click()
    expect(page.locator("#change-by-part")).to_be_visible()
    page.get_by_role("tab", name="Charts and tables").click()
    expect(page.locator("#c-packets")).to_be_visible()
    assert page_errors == []


def test_address_of_a_folded_table_opens_it(page, experiment):
    page.goto(experiment.get_absolute_url())
    expect(page.locator("#diagnosis")).to_have_attribute("aria-busy", "false")
    page.goto(f"{experiment.get_absolute_url()}#change-by-part")
    expect(page.locator("#change-by-part")).to_be_in_viewport()


def test_members_of_one_name_are_links_that_differ_from_their_text(page, person):
    library = Project.objects.get(slug=DEFAULT_PROJECT)
    runs = [measured(library, {**SIZES, "name": "Water"}, lambda _: {"elapsed_s": 1.0}) for _ in range(3)]
    page.goto(f"/compare/?of={','.join(f'e:{run.slug}' for run in runs)}")
    expect(page.locator(".members a").first).to_be_visible()
    assert violations(page) == []


MORE = """() => [...document.querySelectorAll(".scroll")].filter(box => box.clientWidth)
    .map(box => [box.scrollWidth - box.clientWidth - box.scrollLeft > 1, box.hasAttribute("data-more")])"""
"""Of each visible table: whether columns are cut off at the right, and whether it shows that it scrolls."""


@pytest.mark.parametrize("width", [390, 1280])
def test_tables_with_more_columns_show_that_they_scroll(page, experiment, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{experiment.get_absolute_url()}?tab=configurations")
    page.wait_for_load_state("networkidle")
    table = page.locator("#table .scroll")
    table.locator("td").first.evaluate("cell => { cell.style.minWidth = '2000px' }")
    expect(table).to_have_attribute("data-more", "")
    table.evaluate("box => { box.scrollLeft = box.scrollWidth }")
    expect(table).not_to_have_attribute("data-more", "")
    page.get_by_role("tab", name="Charts and tables").click()
    page.wait_for_load_state("networkidle")
    page.wait_for_function(f"() => ({MORE})().length > 0 && ({MORE})().every(([cut, marked]) => cut === marked)")
