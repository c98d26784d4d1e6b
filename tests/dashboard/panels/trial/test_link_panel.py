"""The link's certificate on the trial page, and the link's fields in the form."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client

from analysis.numbers import duration
from dashboard.panels.new.draft import draft_from_post
from dashboard.panels.new.form import Form
from dashboard.panels.trial.link_panel import link_panel
from experiments.library import load_defaults
from experiments.models import Cluster, Experiment, Trial
from experiments.specification import parse
from tests.dashboard.texts import plain_text

ROW = {"source": "n1", "target": "n2", "quantity": "loss", "unit": "", "asked": 0.01, "achieved": 0.012}
CERTIFICATE: dict[str, Any] = {
    "kept": False,
    "reasons": ["the delay from n1 to n2 is 9 ms instead of 4 ms (tolerance 5 % or 0.3 ms)"],
    "earlier": [],
    "attempts": 3,
    "duration_s": 14.2,
    "rows": [
        {**ROW, "interval": [0.009, 0.015], "tolerance": "99 % interval", "kept": True},
        {**ROW, "quantity": "delay", "unit": "s", "asked": 0.004, "achieved": 0.009, "kept": False},
        {**ROW, "quantity": "TCP rate", "unit": "bit/s", "asked": None, "achieved": 2.8e8, "kept": None},
        {**ROW, "quantity": "length of loss bursts", "unit": "packets", "asked": 5.0, "achieved": 4.523, "kept": True},
    ],
    "round_trips": [{"source": "n1", "target": "n2", "probes": 100, "min_s": 0.008, "median_s": 0.009}],
}


@pytest.fixture
def trial(db: None) -> Trial:
    spec = parse({"name": "link", "workload": "pingpong", "parameters": {"hosts": 2}, "repetitions": 1})
    certified: Trial = Experiment.submit(spec, project=load_defaults()).trials.get()
    Trial.objects.filter(pk=certified.pk).update(
        certificate=CERTIFICATE, conditions={"back_end": "bridge + relay", "link_asked": "4 ms delay"}, state="failed"
    )
    certified.refresh_from_db()
    return certified


@pytest.mark.parametrize(("kind", "link"), [("testbed", "1 Gbit/s"), ("local", "the network as it is")])
def test_the_page_states_a_link_only_where_one_is_made(page: Client, trial: Trial, kind: str, link: str) -> None:
    Cluster.objects.filter(pk=trial.cluster_id).update(kind=kind)
    assert plain_text(page.get(trial.get_absolute_url()).context["link"]) == link


def test_it_compares_achieved_and_requested_with_interval_and_verdict(trial: Trial) -> None:
    panel = link_panel(trial)
    assert panel is not None
    loss, delay, tcp, bursts = panel["rows"]
    assert (loss["asked"], loss["achieved"], loss["interval"]) == (
        "1\u202f%",
        "1.2\u202f%",
        "0.9 to 1.5\u202f%",
    )
    assert [row["state"] for row in (loss, delay, tcp)] == ["kept", "outside", ""]
    assert (tcp["asked"], tcp["achieved"]) == ("–", "280\u202fMbit/s")
    assert (bursts["asked"], bursts["achieved"]) == ("5\u202fpackets", "4.523\u202fpackets")


def test_it_shows_the_age_of_a_kept_certificate(trial: Trial) -> None:
    trial.preparing_at = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
    ages = []
    for measured_at in ("2026-11-27T09:30:00+00:00", "2026-11-27T12:00:02+00:00", ""):
        trial.certificate = {**CERTIFICATE, "measured_at": measured_at}
        panel = link_panel(trial)
        assert panel is not None
        ages.append(panel["age"])
    assert ages == [duration(2.5 * 3600), "", ""]


def test_the_form_keeps_topology_queue_and_certificate() -> None:
    post = QueryDict(mutable=True)
    post.update(
        {
            "name": "x",
            "workload": "pingpong",
            "certificate": "require",
            "link.topology": "two sites",
            "link.queue": "1 MiB",
            "link.loss_burst": "3",
            "link.congestion_control": "",
            "link.emulator": "auto",
        }
    )
    draft = draft_from_post(post)
    assert draft["certificate"] == "require"
    assert draft["link"] == {"topology": "two sites", "queue": "1 MiB", "loss_burst": 3}
    form = Form(draft)
    fields = {field.path: field for field in form.link_fields}
    assert fields["link.queue"].value == "1 MiB"
    assert fields["link.congestion_control"].value == ""
    assert ("star", "Star") in fields["link.topology"].choices
    assert form.has_link_options
    assert not Form({"name": "x", "link": {"delay": "4 ms"}}).has_link_options
