"""The pages under a strict policy for styles and scripts: the browser refuses nothing of ours."""

import pytest
from playwright.sync_api import expect

POLICY = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:"
LISTEN = """
window.refused = [];
document.addEventListener("securitypolicyviolation", e => refused.push(`${e.effectiveDirective} of ${e.sourceFile}`));
"""


@pytest.fixture
def strict(page):
    """Every document arrives with the policy; what the browser refuses is kept in `refused`."""

    def add_policy(route):
        if route.request.resource_type != "document":
            route.continue_()
            return
        answer = route.fetch()
        route.fulfill(response=answer, headers={**answer.headers, "content-security-policy": POLICY})

    page.route(lambda address: "/static/" not in address, add_policy)
    page.add_init_script(LISTEN)
    yield page
    page.unroute_all(behavior="ignoreErrors")  # a page that polls asks on while its context ends


@pytest.mark.parametrize("address", ["/", "/experiments/new/", "/clusters/", "/workloads/"])
def test_it_shows_a_page_without_charts_whole(strict, address):
    strict.goto(address)
    expect(strict.locator("main .panel").first).to_be_visible()
    assert strict.evaluate("refused") == []


def test_only_the_style_element_of_plotly_is_refused_on_a_page_with_charts(strict):
    strict.goto("/experiments/guster-2007-water/")
    panel = strict.locator("#c-time")
    expect(panel.locator(".scatterlayer .trace")).to_have_count(4)
    height = panel.locator(".plot").bounding_box()["height"]
    panel.get_by_role("button", name="Table").click()
    expect(panel.locator("tbody tr")).to_have_count(6)
    assert panel.locator(".twin").evaluate("e => e.style.maxHeight") == f"{height:.0f}px"
    refused = strict.evaluate("refused")
    assert [entry for entry in refused if not ("style-src-elem" in entry and "plotly" in entry)] == []
