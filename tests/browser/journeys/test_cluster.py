"""Journey: add, test and use a cluster over ssh, with a real sshd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import violations
from tests.browser.journeys.hands import Hands
from tests.browser.journeys.installation import Installation
from tests.workers.clusters.real_hosts import SshHosts
from tests.workers.clusters.trials import PlainLink
from workers import launchers

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[SshHosts]:
    with launchers.get("testbed").open(host_count=2, link=PlainLink()) as session:
        yield SshHosts(session, tmp_path)


def test_hosts_are_tested_before_they_take_experiments(
    hands: Hands,
    installation: Installation,
    hosts: SshHosts,
    tmp_path: Path,
    as_the_guide_says: Callable[[str, Hands], None],
) -> None:
    page, settings = hands.page, hosts.settings()
    hands.press("Clusters")
    hands.press("Add a cluster")
    page.wait_for_url("**/clusters/new/")
    hands.press("Hosts over ssh")
    page.wait_for_url("**/clusters/new/?kind=ssh")
    hands.type("Name", f"Bench rack {tmp_path.name}", is_step=False)
    hands.type("Hosts", "n1, n2")
    hands.type("User", settings["user"], is_step=False)
    hands.type("Private key", settings["key"], is_step=False)
    hands.press("Advanced")
    hands.type("ssh configuration", settings["config"], is_step=False)
    hands.type("Between hosts", " ".join(settings["agent"]), is_step=False)
    hands.type("Interface", "eth0")
    hands.press("Save switched off and check")
    page.wait_for_url("**/clusters/bench-rack-*/")
    elements = page.locator("#test .test-steps > li")
    expect(page.locator("#test .sub")).to_contain_text("took", timeout=100_000)
    assert violations(page) == []
    assert {"Reach", "Python", "MPI hello across two hosts"} <= {
        step.locator("b").inner_text() for step in elements.all() if "ok" in (step.get_attribute("class") or "")
    }
    slug = page.url.rstrip("/").rpartition("/")[2]
    assert installation.ask(f"clusters/{slug}/")["state"] == "off"
    hands.press("Switch cluster on")
    expect(page.get_by_role("link", name="New experiment")).to_be_visible()
    assert installation.ask(f"clusters/{slug}/")["state"] == "ready"
    as_the_guide_says("Add a cluster and check it", hands)
