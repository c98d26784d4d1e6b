"""The new-experiment form in a browser."""

import re
import time

from playwright.sync_api import expect

from experiments.models import Experiment


def test_it_lets_the_preview_follow_what_one_types(page, page_errors):
    page.goto("/experiments/new/")
    start = page.locator("#startbar")
    values = page.locator("[name=sweep_values]")
    values.fill("1, 2")
    expect(start).to_contain_text("Start round 1: 6 trials")
    values.fill("0, 2")
    expect(page.locator("#err-sweep-0")).to_contain_text("must be 1 or more")
    expect(values).to_have_attribute("aria-invalid", "true")
    paddings = values.evaluate("field => [getComputedStyle(field).paddingLeft, getComputedStyle(field).paddingRight]")
    assert len(set(paddings)) == 1, "room for an icon that is not drawn cuts numbers off"
    expect(start).to_contain_text("Correct the marked fields.")
    values.fill("1..3")
    expect(start).to_contain_text("Start round 1: 9 trials")
    expect(values).not_to_have_attribute("aria-invalid", "true")
    expect(page.locator("#values-0")).to_have_text("1  2  3")
    assert page_errors == []


def test_start_is_marked_until_the_preview_follows_and_starts_what_is_typed(page):
    page.goto("/experiments/new/")
    page.wait_for_load_state("networkidle")
    start, held = page.locator("#startbar"), []
    expect(start).not_to_have_attribute("aria-busy", "true")
    page.route("**/experiments/new/preview/", lambda route: held.append(route))
    with page.expect_request("**/experiments/new/preview/"):
        page.locator("[name=sweep_values]").fill("1, 2")
    expect(start).to_have_attribute("aria-busy", "true")
    expect(page.locator("#sync")).not_to_contain_text("match")
    held[0].continue_()
    expect(start).to_contain_text("6 trials")
    expect(start).not_to_have_attribute("aria-busy", "true")
    page.locator("[name=sweep_values]").fill("1")
    start.locator(".btn-primary").click()
    page.wait_for_url(re.compile(r"/experiments/(?!new)"))
    assert Experiment.objects.latest("pk").specification["sweep"] == {"hosts": "1"}


def test_it_adds_and_removes_sweep_rows(page):
    page.goto("/experiments/new/")
    ranks = page.locator("[name='parameters.ranks_per_host']")
    page.get_by_role("button", name="Add parameter").click()
    expect(page.locator("#startbar")).to_contain_text("Start round 1: 18 trials")
    expect(ranks).to_be_disabled()
    expect(ranks).to_have_value("swept")
    page.get_by_role("button", name="Remove parameter").nth(1).click()
    expect(page.locator("#startbar")).to_contain_text("Start round 1: 9 trials")
    expect(ranks).to_have_value("1")


def test_settings_that_the_cluster_cannot_apply_are_neither_shown_nor_sent(page, page_errors):
    page.goto("/experiments/new/")
    bandwidth, yaml = page.locator("[name='link.bandwidth']"), page.locator("#yaml")
    bandwidth.fill("200 Mbit/s")
    page.locator("[name=sweep_values]").fill("1")
    expect(yaml).to_have_value(re.compile("bandwidth: 200 Mbit/s"))
    expect(page.locator("[name=allocation]")).to_be_hidden()
    page.locator("[name=cluster]").select_option("local")
    expect(bandwidth).to_be_hidden()
    expect(page.locator("[name=ideal]")).to_be_hidden()
    expect(yaml).to_have_value(re.compile("cluster: local"))
    expect(yaml).not_to_have_value(re.compile("bandwidth"))
    expect(page.locator("#startbar")).to_contain_text("Start round 1: 3 trials")
    page.locator("[name=cluster]").select_option("testbed")
    expect(bandwidth).to_have_value("200 Mbit/s")
    expect(yaml).to_have_value(re.compile("bandwidth: 200 Mbit/s"))
    assert page_errors == []


def test_swept_parameter_with_choices_is_disabled(page):
    page.goto("/experiments/new/?workload=data-staging")
    staging = page.locator("select[name='parameters.staging']")
    expect(staging).to_have_value("pull")
    page.locator("[name=sweep_name]").select_option("staging")
    expect(page.locator("[name=sweep_values]")).to_have_value("pull, multicast, tree")
    page.locator("[name=sweep_values]").fill("pull, tree")
    expect(staging).to_be_disabled()
    expect(staging).to_have_value("swept")
    expect(page.locator("#values-0")).to_have_text("pull  tree")
    page.get_by_role("button", name="Remove parameter").click()
    expect(staging).to_have_value("pull")


def test_it_waits_for_the_parameters_of_another_workload_however_slow_the_answer_is(page):
    def answer_late(route):
        time.sleep(0.6)  # the preview is requested after 0.25 s
        route.continue_()

    page.route("**/experiments/new/fields/", answer_late)
    page.goto("/experiments/new/")
    page.get_by_role("radiogroup", name="Workload").get_by_text("Ping-pong", exact=True).click()
    expect(page.locator("[name='parameters.message_bytes']")).to_be_visible()


def test_choosing_another_workload_ends_the_preview_of_the_one_before(page, page_errors):
    previews, fields = [], []
    page.goto("/experiments/new/")
    page.wait_for_load_state("networkidle")
    page.route("**/experiments/new/preview/", lambda route: previews.append(route))
    page.route("**/experiments/new/fields/", lambda route: fields.append(route))
    with page.expect_request("**/experiments/new/preview/"):
        page.locator("[name=name]").fill("Sent before")
    page.locator("[name=name]").fill("Due while the fields are on their way")
    with page.expect_event("requestfailed"):
        page.evaluate("document.getElementById('wl-pingpong').click()")
    page.wait_for_timeout(600)  # a preview is requested 250 ms after a key
    assert len(previews) == 1
    page.unroute("**/experiments/new/preview/")
    fields[0].continue_()
    expect(page.locator("[name='parameters.message_bytes']")).to_be_visible()
    expect(page.locator("#preview")).to_contain_text("Configurations")
    page.wait_for_load_state("networkidle")
    assert page_errors == []


def test_form_and_start_follow_the_typed_yaml(page):
    page.goto("/experiments/new/#yaml-pane")
    yaml = page.locator("#yaml")
    expect(yaml).to_be_visible()
    yaml.fill("name: From YAML\nworkload: water\nsweep:\n  hosts: [1, 2]\nrepetitions: 0\n")
    expect(page.locator("#yaml-errors")).to_contain_text("Line 5")
    expect(page.locator("[name=name]")).not_to_have_value("From YAML")
    expect(page.locator("#steps")).to_have_js_property("inert", True)
    expect(page.locator("#steps")).to_have_css("opacity", "0.55")
    expect(page.locator("#form-locked")).to_be_visible()
    expect(page.locator("#startbar button")).to_have_attribute("aria-disabled", "true")
    yaml.fill(yaml.input_value().replace("repetitions: 0", "repetitions: 4"))
    expect(page.locator("[name=name]")).to_have_value("From YAML")
    expect(page.locator("#startbar")).to_contain_text("Start 8 trials")
    expect(page.locator("#sync")).to_contain_text("Form and YAML match")
    expect(page.locator("#form-locked")).to_be_hidden()
    for invalid in ("[", "name: From YAML\nworkload: water\nsweep:\n  hosts: [1, 4000]\n"):
        yaml.fill(invalid)
        expect(page.locator("#yaml-errors .note")).to_be_visible()
        page.get_by_role("tab", name="Preview").click()
        page.locator("#form-locked").get_by_role("button", name="Discard edits").click()
        expect(page.locator("#steps")).to_have_js_property("inert", False)
        expect(page.locator("#form-locked")).to_be_hidden()
        expect(yaml).to_have_value(re.compile("name: From YAML"))
        page.get_by_role("tab", name="YAML").click()


def test_requests_that_newer_ones_replace_are_no_errors_of_the_console(page):
    errors, previews = [], []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto("/experiments/new/")
    page.wait_for_load_state("networkidle")
    page.route("**/experiments/new/preview/", lambda route: previews.append(route))
    with page.expect_request("**/experiments/new/preview/"):
        page.locator("[name=name]").fill("One")
    with page.expect_event("requestfailed"), page.expect_request("**/experiments/new/preview/"):
        page.locator("[name=name]").fill("Two")
    previews[-1].continue_()
    expect(page.locator("#yaml")).to_have_value(re.compile("name: Two"))
    assert errors == []


def test_all_errors_are_marked_at_once_and_the_panel_names_their_labels(page):
    page.goto("/experiments/new/")
    page.locator("[name=name]").fill("")
    page.locator("[name=sweep_values]").fill("1, zwei, 4")
    expect(page.locator("#err-sweep-0")).to_contain_text("not a whole number")
    expect(page.locator("#err-name")).to_contain_text("enter a name")
    expect(page.locator("#count-0")).to_have_text("–")
    expect(page.locator("#preview b")).to_have_text(["Name", "Sweep, Hosts"])


def test_what_a_goal_or_a_workload_is_shows_before_it_is_chosen(page):
    page.goto("/experiments/new/")
    page.locator("label[for=g1]").hover()
    expect(page.locator("#explanation")).to_have_text("Adds rounds of trials")
    page.locator("label[for=wl-hpl]").hover()
    expect(page.locator("#explanation")).to_contain_text("Linpack")


def test_a_typed_unit_replaces_the_unit_beside_its_field(page):
    page.goto("/experiments/new/?workload=ring")
    size = page.locator("[name='parameters.message_bytes']")
    unit = page.locator(".input-group", has=size).locator(".input-group-text")
    size.fill("65536")
    expect(unit).to_be_visible()
    size.fill("64 KiB")
    expect(unit).to_be_hidden()
    expect(page.locator("#yaml")).to_have_value(re.compile("message_bytes: 65536"))


def test_the_start_bar_leaves_the_hint_below_wrong_yaml_visible(page):
    page.goto("/experiments/new/#yaml-pane")
    page.locator("#yaml").fill("name: [\n")
    expect(page.locator("#yaml-errors .note")).to_be_visible()
    hint = page.locator("#yaml-pane .hint")
    hint.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    bottom = hint.bounding_box()["y"] + hint.bounding_box()["height"]
    assert bottom <= page.locator("#startbar").bounding_box()["y"]
