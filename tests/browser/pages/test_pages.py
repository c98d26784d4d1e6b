"""The pages in a browser: they speak by keyboard, and repaint with the theme."""

import pytest
from playwright.sync_api import expect

from experiments.models import Experiment, Project
from experiments.models.people.project import DEFAULT_PROJECT
from experiments.specification import parse
from tests.browser.accessibility import violations

SETTLED = """async name => {
    const plot = document.querySelector("#c-time .plot"), source = document.getElementById(plot.dataset.figure);
    const frame = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    let drawn = 0;
    await frame();
    plot.on("plotly_afterplot", () => drawn++);
    if (name) {
        const figure = JSON.parse(source.textContent);
        figure.layout.xaxis.title = { text: name };
        source.textContent = JSON.stringify(figure);
    }
    for (const part of [1, 2, 3]) document.body.dispatchEvent(new CustomEvent("htmx:afterSettle", { bubbles: true }));
    await frame();
    return drawn;
}"""
"""Three parts of the page come anew, with the name of an axis or as they were; how often its chart was drawn."""


def test_it_draws_charts_and_shows_them_as_tables(page, page_errors):
    page.goto("/experiments/guster-2007-water/")
    panel = page.locator("#c-time")
    expect(panel.locator(".scatterlayer .trace")).to_have_count(4)
    panel.get_by_role("button", name="Table").click()
    expect(panel.locator("tbody tr")).to_have_count(6)
    expect(panel.locator("tbody tr").nth(0)).to_contain_text("246")  # four digits, as everywhere: not 245.99
    expect(panel.locator("tbody tr").nth(1)).to_contain_text("200.4")
    panel.get_by_role("button", name="Chart").click()
    expect(panel.locator(".plot")).to_be_visible()
    assert page.evaluate(SETTLED, "") == 0
    assert page.evaluate(SETTLED, "Another name") == 1
    expect(panel.locator(".xtitle")).to_have_text("Another name")
    assert page_errors == []


def test_it_switches_and_remembers_the_theme_and_repaints_charts(page):
    page.goto("/experiments/guster-2007-water/")
    line = page.locator("#c-time .scatterlayer .js-line").first
    before = line.evaluate("e => getComputedStyle(e).stroke")
    page.get_by_role("button", name="Switch light or dark theme").click()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    expect(line).not_to_have_css("stroke", before)
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")


def test_it_moves_to_search_by_slash_and_between_trials_by_brackets(page, finished):
    first, second = finished.trials.order_by("position")[:2]
    page.goto(first.get_absolute_url())
    page.keyboard.press("]")
    page.wait_for_url(f"**{second.get_absolute_url()}")
    page.keyboard.press("[")
    page.wait_for_url(f"**{first.get_absolute_url()}")
    page.keyboard.press("/")
    page.keyboard.type(f"#{second.pk}")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{second.get_absolute_url()}")


def test_lists_are_worked_by_keys_that_can_be_switched_off(page, finished, page_errors):
    newest = list(finished.trials.order_by("-pk"))[:2]
    page.goto(f"/trials/?experiment={finished.slug}")
    rows = page.locator("table[data-rows] tbody tr")
    page.keyboard.press("j")
    expect(rows.nth(0).get_by_role("link").first).to_be_focused()
    page.keyboard.press("x")
    expect(rows.nth(0).get_by_role("checkbox")).to_be_checked()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_role("status")).to_have_text("Selected; 2 in all")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{newest[0].get_absolute_url()}")
    page.go_back()
    page.get_by_role("searchbox", name="Words of the experiment or a tag").click()
    page.keyboard.type("jx?")  # in a field they are letters
    expect(page.locator("#keys")).to_be_hidden()
    page.goto(f"/trials/?experiment={finished.slug}")
    for key in ("j", "x", "j", "x", "c"):
        page.keyboard.press(key)
    page.wait_for_url(f"**/compare/?of=t*{newest[0].pk}&of=t*{newest[1].pk}")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("checkbox", name="Enable single-letter shortcuts").uncheck()
    page.get_by_role("button", name="Close").click()
    page.goto("/experiments/")
    page.keyboard.press("j")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_hidden()
    assert page.evaluate("document.activeElement.tagName") == "BODY"
    page.locator("summary[aria-label^=Account]").click()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(page.get_by_role("checkbox", name="Enable single-letter shortcuts")).not_to_be_checked()
    assert page_errors == []


@pytest.mark.parametrize("width", [1440, 1280, 1180, 390])
def test_search_is_reached_by_its_key_and_its_icon_at_every_width(page, width):
    page.set_viewport_size({"width": width, "height": 844})
    box = page.get_by_role("searchbox", name="Search experiments")
    icon = page.get_by_role("button", name="Search", exact=True)
    for open_box in (lambda: page.keyboard.press("/"), box.click if width == 1440 else icon.click):
        page.goto("/account/")
        open_box()
        expect(box).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []
    box.fill("water")
    box.press("Enter")
    page.wait_for_url("**/help/?q=water")
    expect(page.get_by_role("heading", name="Workloads")).to_be_visible()


def test_it_opens_the_menu_of_a_phone(page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/")
    link = page.get_by_role("navigation", name="Main").get_by_role("link", name="Workloads")
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    link.click()
    page.wait_for_url("**/workloads/")


def test_it_asks_before_it_cancels(page, person):
    spec = parse({"name": "Waiting", "workload": "water", "sweep": {"hosts": [1, 2]}, "repetitions": 2})
    experiment = Experiment.submit(spec, project=Project.objects.get(slug=DEFAULT_PROJECT), owner=person)
    page.goto(experiment.get_absolute_url())
    page.get_by_role("button", name="Cancel experiment", exact=True).click()
    page.get_by_role("button", name="Keep running").click()
    assert experiment.trials.filter(state="queued").count() == 4
    page.get_by_role("button", name="Cancel experiment", exact=True).click()
    page.get_by_role("button", name="Cancel remaining trials").click()
    expect(page.get_by_text("Cancelled 4 trials")).to_be_visible()
    assert not experiment.trials.filter(state="queued").exists()


def test_words_explain_themselves_to_pointer_and_keyboard(page, finished, page_errors):
    page.goto(finished.trials.last().get_absolute_url())
    page.wait_for_load_state("networkidle")  # parts of the page that are renewed would take the pointer away
    said = page.locator("#explanation")
    term = page.get_by_role("link", name="Elapsed time").first
    term.hover()
    expect(said).to_have_text("Wall time of the MPI launch command.")
    said.hover()
    expect(said).to_be_visible()
    page.keyboard.press("Escape")
    expect(said).to_be_hidden()
    page.mouse.move(0, 0)
    term.focus()
    expect(said).to_be_visible()
    expect(term).to_have_accessible_description("Wall time of the MPI launch command.")
    page.keyboard.press("Enter")
    page.wait_for_url("**/help/metrics/#elapsed_s")
    assert page_errors == []


def test_a_tap_explains_a_word_and_a_second_one_follows_it(page, finished, browser, live_server):
    context = browser.new_context(base_url=live_server.url, has_touch=True, viewport={"width": 390, "height": 844})
    context.add_cookies(page.context.cookies())
    phone = context.new_page()
    address = finished.trials.last().get_absolute_url()
    phone.goto(address)
    phone.wait_for_load_state("networkidle")
    term, said = phone.get_by_role("link", name="Elapsed time").first, phone.locator("#explanation")
    term.tap()
    expect(said).to_have_text("Wall time of the MPI launch command.")
    assert phone.url.endswith(address)
    phone.evaluate(
        "document.querySelector('.pulse').dispatchEvent(new CustomEvent('htmx:beforeSwap', {bubbles: true}))"
    )
    expect(said).to_be_visible()  # a refresh of another part does not close it
    phone.locator("h1").tap()
    expect(said).to_be_hidden()
    term.tap()
    expect(said).to_be_visible()
    term.tap()
    phone.wait_for_url("**/help/metrics/#elapsed_s")
    context.close()
