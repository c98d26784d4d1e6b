"""Packets: a user who waits for others sees a notice, then the packets."""

from __future__ import annotations

import re
from contextlib import ExitStack

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, Route, expect

from dashboard.requests.concurrency_limits import PER_USER, acquire
from experiments.library import load_defaults
from experiments.models import Trial
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.dashboard.studies_measured import measured
from tests.experiments import factories

SPECIFICATION = {"name": "Captured", "workload": "water", "sweep": {"hosts": [2]}, "repetitions": 1}
WAITS = "Other packets are being read."
PATIENT_MS = 60_000
pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def trial(person: User) -> Trial:
    """A finished trial with a capture of one packet."""
    trial = measured(load_defaults(), SPECIFICATION, lambda _: {"elapsed_s": 4.0}).trials.get()
    content = pcapng([Frame.whole(1_700_000_000_000_000_000, ethernet(ipv4(tcp(seq=1))))])
    factories.stored_file(trial, "packets.pcapng", content, kind="capture").save()
    return trial


def test_it_shows_packets_once_it_is_their_turn(
    page: Page,
    person: User,
    trial: Trial,
    empty_redis: object,
    page_errors: list[str],
) -> None:
    rows, detail = page.locator("#packet-rows"), page.locator("#packet-detail")
    with ExitStack() as others:
        for _ in range(PER_USER):
            others.enter_context(acquire(person, "packets"))
        held: list[Route] = []
        page.route("**/packets/?*", lambda route: held.append(route), times=1)
        page.goto(f"{trial.get_absolute_url()}#packets")
        page.locator("#packet-query").scroll_into_view_if_needed()
        expect(rows.locator(".while-loading")).to_be_visible()
        held[0].continue_()
        expect(rows).to_contain_text(WAITS, timeout=PATIENT_MS)
    show = rows.get_by_role("button", name="Show packet 1")
    expect(show).to_be_visible(timeout=PATIENT_MS)
    expect(rows).not_to_contain_text(WAITS)
    with ExitStack() as others:
        for _ in range(PER_USER):
            others.enter_context(acquire(person, "packets"))
        rows.get_by_role("cell").nth(4).click()
        expect(detail).to_contain_text(WAITS, timeout=PATIENT_MS)
    expect(detail).to_contain_text("Packet 1,", timeout=PATIENT_MS)
    expect(rows.locator("tr[aria-current]")).to_have_text(re.compile(r"^\s*1\s"))
    assert page_errors == []
