"""Reports in a browser: insert a part, preview, save, draw offline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from experiments.models import Experiment, Project, Report
from experiments.models.people.project import DEFAULT_PROJECT
from tests.browser.accessibility import violations
from tests.dashboard.studies_measured import LADDER, measured, solve


@pytest.fixture
def experiment(person) -> Experiment:
    def values(parameters: Mapping[str, Any]) -> dict[str, float]:
        return {**solve(parameters), "packets": 3.0 * parameters["ns"]}

    return measured(Project.objects.get(slug=DEFAULT_PROJECT), LADDER, values)


def test_a_part_is_inserted_previewed_and_saved(page, experiment, page_errors):
    page.goto(experiment.get_absolute_url())
    page.locator("summary", has_text="More actions").click()
    page.get_by_role("button", name="Create report").click()
    expect(page).to_have_url(
        f"**/reports/{Report.objects.get().pk}/edit/".replace("**", page.url.split("/reports/")[0])
    )
    text = page.get_by_label("Text, in Markdown")
    assert text.input_value() == Report.objects.get().current.text
    text.fill("First words.\nSecond line.")
    page.get_by_label("Of the experiment").fill(experiment.slug)
    page.get_by_role("button", name="Table: trials").click()
    assert text.input_value() == f"First words.\nSecond line.\n\n{{{{ table {experiment.slug} trials }}}}\n"
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview").get_by_role("columnheader", name="Trust in the capture")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.get_by_text("Saved as version 2.")).to_be_visible()
    expect(page.locator("article").get_by_role("columnheader", name="Trust in the capture")).to_be_visible()
    assert violations(page) == []
    assert page_errors == []


DRAWN = "() => [...document.querySelectorAll('.js-plotly-plot')].map(plot => plot.data.map(line => [line.name, ...line.y].join(' ')))"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_downloaded_file_draws_its_charts_without_a_network(
    page, browser: Browser, experiment, person, tmp_path: Path, scheme
):
    charts = ("figure-0", "time", "packets")
    text = "## Three charts\n\n" + "\n\n".join(f"{{{{ chart {experiment.slug} {name} }}}}" for name in charts)
    report = Report.write(experiment.project, "Three charts", text, {}, by=person)
    page.goto(report.get_absolute_url())
    expect(page.locator(".js-plotly-plot .main-svg:first-child")).to_have_count(len(charts))
    lines = page.evaluate(DRAWN)
    assert all(any(len(line.split()) > 2 for line in chart) for chart in lines), lines
    with page.expect_download() as download:
        page.get_by_role("link", name="Download file").click()
    file = tmp_path / "report.html"
    download.value.save_as(file)
    context = browser.new_context(offline=True, color_scheme=scheme, viewport={"width": 1440, "height": 900})
    alone, requests, said = context.new_page(), [], []
    alone.on("request", lambda request: requests.append(request.url))
    alone.on("console", lambda message: said.append(message.text))
    alone.on("pageerror", lambda error: said.append(str(error)))
    alone.goto(file.as_uri())
    expect(alone.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    expect(alone.locator(".js-plotly-plot .main-svg:first-child")).to_have_count(len(charts))
    assert alone.evaluate(DRAWN) == lines, "what the page draws"
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert said == []
    assert alone.evaluate("document.documentElement.dataset.bsTheme") == scheme
    assert violations(alone) == []
    alone.emulate_media(media="print")
    alone.evaluate("dispatchEvent(new Event('beforeprint'))")
    widest = "Math.max(...[...document.querySelectorAll('.js-plotly-plot .main-svg')].map(svg => svg.getBoundingClientRect().width))"
    assert alone.evaluate(widest) <= 660
    assert alone.evaluate("document.documentElement.dataset.bsTheme") == "light"
    expect(alone.get_by_role("button", name="Table").first).to_be_hidden()
    context.close()
