"""What costs much is done for each person a few times at once, and a place on this machine is in no message."""

from __future__ import annotations

import re
from contextlib import ExitStack
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from dashboard.pages.packets import LOOKS
from dashboard.requests import concurrency_limits
from experiments.models import Trial
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.dashboard.api.clients import client_of
from tests.experiments import factories


@pytest.fixture
def others(person: User, empty_redis: object) -> list[concurrency_limits.Seat]:
    """All seats of the reader for exports, taken by other requests of the same person."""
    return [concurrency_limits.take(person, "export") for _ in range(concurrency_limits.SEATS)]


@pytest.fixture
def measured_trial(submit, run) -> Trial:
    """A trial with a capture of its own that holds one packet."""
    experiment = submit()
    run(most=1)
    trial = experiment.trials.get(state="finished")
    content = pcapng([Frame.whole(1_700_000_000_000_000_000, ethernet(ipv4(tcp(seq=1))))])
    factories.stored_file(trial, "packets.pcapng", content, kind="capture").save()
    return trial


def test_exports_beyond_those_being_made_wait_in_the_background_and_beyond_that_are_told_to_come_again(
    page, person, others
) -> None:
    assert page.get("/explore/export.csv")["Location"].startswith("/tasks/")
    rest = client_of(person)
    accepted = rest.get("/api/v1/explore/export/json/")
    assert (accepted.status_code, accepted.json()["state"]) == (202, "waiting")
    for answer in (page.get("/explore/export.jsonl"), rest.get("/api/v1/explore/export/jsonl/")):
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "5")
    assert client_of(factories.person("ada")).get("/api/v1/explore/export/csv/").status_code == 200
    others[0].leave()
    for _ in range(3):
        assert b"".join(page.get("/explore/export.csv")).startswith(b"experiment,")


def test_a_body_that_nobody_reads_to_its_end_leaves_its_seat(person, empty_redis) -> None:
    for _ in range(concurrency_limits.SEATS + 1):
        body = concurrency_limits.LimitedResponse(iter([b"a", b"b"]), concurrency_limits.take(person, "export"))
        assert next(body) == b"a"
        body.close()


def test_an_export_that_fails_leaves_its_seat(page, person, empty_redis) -> None:
    for _ in range(concurrency_limits.SEATS + 1):
        assert page.get("/explore/export.csv", {"where": "hosts <"}).status_code == 400
    body = concurrency_limits.LimitedResponse(iter([]), concurrency_limits.take(person, "export"))
    with pytest.raises(StopIteration):
        next(body)
    assert b"".join(page.get("/explore/export.csv"))


def test_one_more_look_at_packets_waits_its_turn_and_is_answered_then(
    page, person, measured_trial, empty_redis
) -> None:
    address = reverse("trial-packets", args=[measured_trial.pk])
    with ExitStack() as turns:
        for _ in range(LOOKS.of_one):
            turns.enter_context(LOOKS.turn(person))
        answers = [page.get(address, {"filter": "tcp"}).content.decode() for _ in range(2)]
        assert "This one waits its turn, and appears here." in answers[0]
        assert "behind 1 other," in answers[1]
        again = unescape(re.search(r'hx-get="([^"]+)"', answers[0])[1])
        assert "This one waits its turn, and" in page.get(again).content.decode(), "it keeps its place"
        detail = page.get(reverse("trial-packet", args=[measured_trial.pk, 1])).content.decode()
        assert "behind 2 others," in detail
    assert 'aria-label="Show packet 1"' in page.get(again).content.decode()


def test_a_wrong_filter_takes_the_row_away_that_waited_for_it(page, measured_trial, empty_redis) -> None:
    address = reverse("trial-packets", args=[measured_trial.pk])
    answer = page.get(address, {"filter": "no such thing", "ticket": "abc"})
    assert (answer.status_code, answer["HX-Reswap"]) == (200, "delete")


def test_tsharks_errors_name_the_file_and_no_place(page, measured_trial) -> None:
    artifact = measured_trial.artifacts.get(kind="capture")
    factories.store_again(artifact, b"this is no capture")
    answer = page.get(reverse("trial-packets", args=[measured_trial.pk])).content.decode()
    assert artifact.name in answer
    assert str(artifact.file.parent) not in answer
