"""Results leave and enter in a browser."""

import pytest
from playwright.sync_api import expect

from experiments.exchange.bundle import write_bundle
from experiments.exchange.choice import chosen_by
from experiments.exchange.leaving import Wanted
from experiments.models import Experiment
from tests.browser.accessibility import violations
from tests.experiments import factories

pytestmark = pytest.mark.usefixtures("session_directory", "empty_redis")


def test_a_bundle_is_looked_at_and_then_imported(page, tmp_path, complaints):
    experiment = factories.experiment(name="Water of others")
    for _ in range(experiment.trials.count()):
        factories.finished()
    page.goto(experiment.get_absolute_url())
    page.get_by_role("link", name="Bundle").click()
    expect(page.get_by_text("4 trials that ended")).to_be_visible()
    assert violations(page) == []
    place = tmp_path / "water.zip"
    with place.open("wb") as stream:
        write_bundle(stream, chosen_by([experiment.slug]), Wanted(by="okafor"))
    Experiment.objects.filter(pk=experiment.pk).delete()

    page.goto("/experiments/")
    page.get_by_role("link", name="Import results").click()
    page.get_by_label("File", exact=True).set_input_files(place)
    page.get_by_role("button", name="Say what it would create").click()
    expect(page.get_by_text("Water of others: 4 trials with 0 files.")).to_be_visible()
    assert violations(page) == []
    page.get_by_label("File", exact=True).set_input_files(place)
    page.get_by_role("button", name="Import", exact=True).click()
    page.wait_for_url("**/experiments/water-of-others/")
    page.get_by_role("tab", name="Setup and provenance").click()
    expect(page.get_by_text("Not measured here")).to_be_visible()
    assert complaints == []
