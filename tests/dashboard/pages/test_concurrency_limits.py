"""Concurrency limits of exports and packets; errors without local paths."""

from __future__ import annotations

import re
import time
from html import unescape
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from redis.exceptions import RedisError

from dashboard.requests import concurrency_limits
from dashboard.requests.concurrency_limits import PER_USER, Busy, LimitedResponse, Slot, acquire
from experiments.models import Trial
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.dashboard.api.clients import client_of
from tests.experiments import factories


@pytest.fixture
def others(person: User, empty_redis: object) -> list[Slot]:
    """All slots of the user for exports, held by other requests of the same user."""
    return [acquire(person, "export") for _ in range(PER_USER)]


@pytest.fixture
def measured_trial(submit, run) -> Trial:
    """A trial with a capture of its own that holds one packet."""
    experiment = submit()
    run(most=1)
    trial = experiment.trials.get(state="finished")
    content = pcapng([Frame.whole(1_700_000_000_000_000_000, ethernet(ipv4(tcp(seq=1))))])
    factories.stored_file(trial, "packets.pcapng", content, kind="capture").save()
    return trial


def test_exports_beyond_the_limit_run_in_the_background_and_beyond_that_are_refused(page, person, others) -> None:
    assert page.get("/explore/export.csv")["Location"].startswith("/tasks/")
    rest = client_of(person)
    accepted = rest.get("/api/v1/explore/export/json/")
    assert (accepted.status_code, accepted.json()["state"]) == (202, "waiting")
    for answer in (page.get("/explore/export.jsonl"), rest.get("/api/v1/explore/export/jsonl/")):
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "5")
    assert client_of(factories.person("ada")).get("/api/v1/explore/export/csv/").status_code == 200
    others[0].release()
    for _ in range(3):
        assert b"".join(page.get("/explore/export.csv")).startswith(b"experiment,")


def test_limited_response_releases_its_slot_when_it_is_closed_early(person, empty_redis) -> None:
    for _ in range(PER_USER + 1):
        body = LimitedResponse(iter([b"a", b"b"]), acquire(person, "export"))
        assert next(body) == b"a"
        body.close()


def test_failed_export_releases_its_slot(page, person, empty_redis) -> None:
    for _ in range(PER_USER + 1):
        assert page.get("/explore/export.csv", {"where": "hosts <"}).status_code == 400
    body = LimitedResponse(iter([]), acquire(person, "export"))
    with pytest.raises(StopIteration):
        next(body)
    assert b"".join(page.get("/explore/export.csv"))


def test_slots_of_one_user_leave_one_to_others(empty_redis) -> None:
    ada, eve, otto = (SimpleNamespace(pk=number) for number in (1, 2, 3))
    with acquire(ada, "tests", total=3) as first, acquire(ada, "tests", total=3):
        with pytest.raises(Busy):
            acquire(ada, "tests", total=3)
        with acquire(eve, "tests", total=3), pytest.raises(Busy):
            acquire(otto, "tests", total=3)
        first.release()
        first.release()
        acquire(otto, "tests", total=3).release()


def test_slots_of_a_killed_process_expire(empty_redis) -> None:
    ada = SimpleNamespace(pk=1)
    for _ in range(PER_USER):
        acquire(ada, "tests", expires_s=1)
    time.sleep(1.1)
    acquire(ada, "tests")


def test_nothing_is_limited_without_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bool:
        raise RedisError

    monkeypatch.setattr(concurrency_limits, "cache", SimpleNamespace(add=broken, get_many=broken, delete_many=broken))
    for _ in range(PER_USER + 1):
        acquire(SimpleNamespace(pk=1), "tests").release()


def test_packets_beyond_the_limit_follow_when_a_slot_is_free(page, person, measured_trial, empty_redis) -> None:
    slots = [acquire(person, "packets") for _ in range(PER_USER)]
    address = reverse("trial-packets", args=[measured_trial.pk])
    again = unescape(re.search(r'hx-get="([^"]+)"', page.get(address, {"filter": "tcp"}).content.decode())[1])
    assert again.endswith("waited=1")
    assert f'hx-get="{address}' in page.get(again).content.decode()
    detail = reverse("trial-packet", args=[measured_trial.pk, 1])
    assert f'hx-get="{detail}' in page.get(detail).content.decode()
    slots[0].release()
    assert 'aria-label="Show packet 1"' in page.get(again).content.decode()


def test_wrong_filter_removes_the_waiting_row(page, measured_trial, empty_redis) -> None:
    address = reverse("trial-packets", args=[measured_trial.pk])
    answer = page.get(address, {"filter": "no such thing", "waited": "1"})
    assert (answer.status_code, answer["HX-Reswap"]) == (200, "delete")


def test_tshark_errors_name_the_file_without_its_path(page, measured_trial) -> None:
    artifact = measured_trial.artifacts.get(kind="capture")
    factories.store_again(artifact, b"this is no capture")
    answer = page.get(reverse("trial-packets", args=[measured_trial.pk])).content.decode()
    assert artifact.name in answer
    assert str(artifact.file.parent) not in answer
