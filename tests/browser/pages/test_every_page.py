"""Every page fits 320 px and 200 % zoom, passes axe, and does not move."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from dashboard.background.tasks import do
from experiments.models import BackgroundTask, Experiment, Invitation, Program, Project, Report
from experiments.models.people.project import DEFAULT_PROJECT
from tests.browser.accessibility import violations, violations_of_colours
from tests.browser.pages.walked import NOT_WALKED, WALKED
from tests.dashboard.people.addresses import filled
from tests.dashboard.people.table import TABLE
from tests.dashboard.studies_measured import NETWORK, measured, needing
from tests.experiments import factories


def test_every_address_is_walked_or_says_why_not() -> None:
    addresses = {row.removeprefix("GET ") for row in TABLE if row.startswith("GET ") and "api/" not in row}
    walked = [route for name, group in WALKED.items() for route in group if name != "published"]
    left_out = [route for routes in NOT_WALKED.values() for route in routes]
    assert sorted([*walked, *left_out]) == sorted(addresses)


@pytest.fixture
def things(finished: Experiment, person) -> dict[str, dict[str, object]]:
    """Values of the names in addresses."""
    trial = finished.trials.latest("pk")
    project = Project.objects.get(slug=DEFAULT_PROJECT)
    study = measured(project, NETWORK, needing)
    report = Report.write(project, "Water", f"# Water\n\n{{{{ answer {finished.slug} }}}}", {}, by=person)
    Program.register({"name": "solver", "program": ["/opt/solver"]})
    task = BackgroundTask.ask(person, BackgroundTask.Kind.EXPORT, {"query": "", "form": "csv"}, title="Table")
    do(BackgroundTask.claim_next() or task)
    _, invited = Invitation.issue(project, "viewer", by=person)
    return {
        "experiments/": {"slug": finished.slug},
        "trials/": {"pk": trial.pk},
        "trials/chosen/": {"change": "again"},
        "history/": {"configuration": trial.configuration.hash, "cluster": "testbed"},
        "network/": {"slug": study.slug},
        "network/predictions/": {"pk": factories.prediction(finished).pk},
        "clusters/": {"slug": "testbed"},
        "workloads/": {"name": "solver", "slug": "water"},
        "help/": {"name": "terms"},
        "tasks/": {"pk": task.pk},
        "reports/": {"pk": report.pk, "number": 1},
        "projects/": {"slug": DEFAULT_PROJECT},
        "people/": {"pk": person.pk},
        "account/password/reset/": {"uidb36": "1", "key": "wrong"},
        "": {"slug": finished.slug, "trial": trial.pk, "point": trial.configuration.pk, "key": invited},
    }


CHARTS_FIT = """width => innerWidth === width && [...document.querySelectorAll(".js-plotly-plot")].every(plot =>
    !plot.offsetParent || plot.querySelector(".main-svg").getBoundingClientRect().width <= plot.clientWidth + 1)"""
"""The window has its new width, and the charts are drawn anew for it."""


def look(page: Page, address: str) -> list[str]:
    """Return the problems of a page on a dark phone, light, wide, and dark again."""

    def turn(scheme: str) -> None:
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function("scheme => document.documentElement.dataset.bsTheme === scheme", arg=scheme)

    page.emulate_media(color_scheme="dark", reduced_motion="reduce")  # colours change at once
    page.set_viewport_size({"width": 390, "height": 900})
    answer = page.goto(address)
    expect(page.locator("main")).to_be_visible()
    wrong = [] if answer is not None and answer.status < 400 else ["no page"]
    wrong += violations(page)
    if page.evaluate("document.getAnimations().filter(each => each.playState === 'running').length"):
        wrong.append("something moves")
    turn("light")
    wrong += violations_of_colours(page)
    # A phone, a window of 1280 at 400 %, a window of 1440 at 200 %, and that window itself.
    for width in (390, 320, 720, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(CHARTS_FIT, arg=width, timeout=120_000)
        if (needs := page.evaluate("document.documentElement.scrollWidth")) > width:
            wrong.append(f"needs {needs} px of {width}")
    wrong += violations(page)
    turn("dark")
    wrong += violations_of_colours(page)
    for tab in page.locator("[role=tab]").all()[1:]:  # their content is hidden until then
        tab.click()
        wrong += violations(page)
    return wrong


@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", WALKED)
def test_it_fits_every_width_for_all_users_without_problems(
    page: Page, things: dict[str, dict[str, object]], page_errors: list[str], group: str
) -> None:
    if group == "account":  # these pages ask for the password again
        page.goto("/account/again/")
        page.locator("#main [name=password]").fill("correct horse")
        page.locator("#main [name=password]").press("Enter")
        page.wait_for_url(lambda address: "/again/" not in address)
    if group == "signed out":
        page.context.clear_cookies()
        page.goto(f"/invitation/{things['']['key']}/")
    addresses = [
        f"{filled(route, things)}?{query.format(**things[''])}".removesuffix("?")
        for route, query in WALKED[group].items()
    ]
    wrong = {address: problems for address in addresses if (problems := look(page, address))}
    assert wrong == {}
    assert page_errors == []
