"""Measurable sources of a cluster, by its last check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from dashboard.panels.cluster.measurable import measurable
from experiments.files import MPI_PROFILE_NAME
from experiments.models import Artifact, Cluster, ClusterTest, Experiment, Trial
from tests.dashboard.texts import text_of


def step(name: str, state: str = "ok", **texts: Any) -> dict[str, Any]:
    return {"name": name, "state": state, "value": "", "seen": "", "remedy": "", "commands": [], **texts}


def test_measurable_shows_states_and_fixes_of_the_last_check() -> None:
    fix = {"remedy": "Give the account the right.", "commands": ["sudo setcap"]}
    steps = [step("Start"), step("Capture permission", "warning", **fix), step("MPI calls", value="2 ranks")]
    packets, calls, counters = measurable(ClusterTest(steps=steps))
    assert (packets.state, packets.remedy, packets.commands) == ("warning", fix["remedy"], ("sudo setcap",))
    assert (calls.state, calls.value) == ("ok", "2 ranks")
    assert counters.state == "ok"


def test_measurable_counts_devices_and_shows_their_fixes() -> None:
    steps = [step("Start"), step("Counters: Ethernet", value="2 of 2 hosts"), step("Counters not available", "skipped")]
    (*_, counters) = measurable(ClusterTest(steps=steps))
    assert (counters.state, counters.value, counters.commands) == ("ok", "1 of 1 source", ())
    steps.append(step("Counters: Energy", "warning", remedy="Let users read it:", commands=["chmod o+r energy_uj"]))
    (*_, counters) = measurable(ClusterTest(steps=steps))
    assert (counters.state, counters.value) == ("warning", "1 of 2 sources")
    assert (counters.remedy, counters.commands) == ("Let users read it:", ("chmod o+r energy_uj",))


@pytest.mark.parametrize("test", [None, ClusterTest(steps=[]), ClusterTest(steps=[step("Start", "problem")])])
def test_measurable_knows_nothing_without_a_check_that_started(test: ClusterTest | None) -> None:
    assert {source.state for source in measurable(test)} <= {"skipped", "problem"}


def test_trials_that_recorded_packets_are_evidence_until_a_check(
    page: Client, submit: Callable[..., Experiment]
) -> None:
    trial = submit(repetitions=1).trials.first()
    assert trial is not None
    address = reverse("cluster", args=["testbed"])
    Trial.objects.filter(pk=trial.pk).update(cluster=Cluster.objects.get(slug="testbed"))
    assert page.get(address).context["measurable"][0].state == "skipped"
    Artifact.objects.create(trial=trial, name="capture.pcapng.zst", kind=Artifact.Kind.CAPTURE, path="x", size_bytes=1)
    packets, calls, counters = page.get(address).context["measurable"]
    assert [(packets.state, packets.value), calls.state, counters.state] == [("ok", "1 trial"), "skipped", "skipped"]
    for name, kind in ((MPI_PROFILE_NAME, Artifact.Kind.OTHER), ("hosts.json", Artifact.Kind.SAMPLES)):
        Artifact.objects.create(trial=trial, name=name, kind=kind, path=name, size_bytes=1)
    assert {(source.state, source.value) for source in page.get(address).context["measurable"]} == {("ok", "1 trial")}
    ClusterTest.ask(Cluster.objects.get(slug="testbed"))
    assert page.get(address).context["measurable"][0] == packets, "a check that waits has found nothing yet"
    assert measurable(ClusterTest(steps=[step("Capture permission", "warning")]), {"packets": 1})[0].state == "warning"


def test_measurable_shows_why_a_source_was_not_tried() -> None:
    names = ("Capture permission", "MPI calls", "Counters")
    sources = measurable(ClusterTest(steps=[step(name, "skipped", seen="Because n1 is off.") for name in names]))
    assert {(source.state, source.sentence) for source in sources} == {("skipped", "Because n1 is off.")}


def test_cluster_shows_sources_and_renews_them_with_each_step(page: Client, person: User, empty_redis: object) -> None:
    person.memberships.update(role="maintainer")
    rack = Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings={"hosts": ["n1", "n2"]})
    ClusterTest.ask(rack)
    test = ClusterTest.begin(rack, "host:1:1")
    assert test is not None
    test.end([step("Start"), step("Capture permission", "warning", commands=["sudo setcap"])])
    whole = text_of(page.get(reverse("cluster", args=["rack"])))
    assert whole.count('id="measurable"') == 1
    assert "hx-swap-oob" not in whole.partition("<main")[2]
    fragment = text_of(page.get(reverse("cluster-test", args=["rack"])))
    assert fragment.count("<pre>sudo setcap</pre>") == 2, "in the check, and outside of it"
    assert 'hx-swap-oob="true"' in fragment
