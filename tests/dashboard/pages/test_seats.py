"""What costs much is done for each person a few times at once, and a place on this machine is in no message."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from dashboard import seats
from experiments.models import Trial
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.dashboard.api.clients import client_of
from tests.experiments import factories


@pytest.fixture
def others(person: User, empty_redis: object) -> list[seats.Seat]:
    """All seats of the reader for exports and packets, taken by other requests of the same person."""
    return [seats.take(person, work) for work in ("export", "packets") for _ in range(seats.SEATS)]


@pytest.fixture
def measured_trial(submit, run) -> Trial:
    """A trial with a capture of its own that holds one packet."""
    experiment = submit()
    run(most=1)
    trial = experiment.trials.get(state="finished")
    content = pcapng([Frame.whole(1_700_000_000_000_000_000, ethernet(ipv4(tcp(seq=1))))])
    factories.stored_file(trial, "packets.pcapng", content, kind="capture").save()
    return trial


def test_one_more_export_is_told_to_come_again_and_is_made_when_another_has_ended(page, person, others) -> None:
    for answer in (page.get("/explore/export.csv"), client_of(person).get("/api/v1/explore/export/csv/")):
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "5")
        assert "are being made for you already" in answer.content.decode()
    others[0].leave()
    for _ in range(3):
        assert b"".join(page.get("/explore/export.csv")).startswith(b"experiment,")
    assert client_of(factories.person("ada")).get("/api/v1/explore/export/csv/").status_code == 200


def test_a_body_that_nobody_reads_to_its_end_leaves_its_seat(person, empty_redis) -> None:
    for _ in range(seats.SEATS + 1):
        body = seats.Seated(iter([b"a", b"b"]), seats.take(person, "export"))
        assert next(body) == b"a"
        body.close()


def test_an_export_that_fails_leaves_its_seat(page, person, empty_redis) -> None:
    for _ in range(seats.SEATS + 1):
        assert page.get("/explore/export.csv", {"where": "hosts <"}).status_code == 400
    body = seats.Seated(iter([]), seats.take(person, "export"))
    with pytest.raises(StopIteration):
        next(body)
    assert b"".join(page.get("/explore/export.csv"))


def test_one_more_look_at_packets_is_told_so_at_the_filter(page, measured_trial, others) -> None:
    answer = page.get(reverse("trial-packets", args=[measured_trial.pk]), {"filter": "tcp"}).content.decode()
    assert "are being made for you already" in answer


def test_tsharks_errors_name_the_file_and_no_place(page, measured_trial) -> None:
    artifact = measured_trial.artifacts.get(kind="capture")
    factories.store_again(artifact, b"this is no capture")
    answer = page.get(reverse("trial-packets", args=[measured_trial.pk])).content.decode()
    assert artifact.name in answer
    assert str(artifact.file.parent) not in answer
