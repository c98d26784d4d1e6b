"""The draft of a network study from an experiment."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dashboard.panels.new.network_draft import network_draft
from experiments.models import Experiment, Project
from experiments.specification import design, parse
from tests.dashboard.laboratory import specification
from tests.dashboard.studies_measured import NETWORK, measured, needing


def reported(parameters: Any) -> dict[str, float]:
    """4 hosts are fastest: 2 s, 10 000 sequential messages, 0.5 s of volume."""
    seconds = {1: 3.0, 2: 4.0, 4: 2.0}[parameters["hosts"]]
    return {"elapsed_s": seconds, "chain_messages": 10_000, "chain_volume_s": 0.5}


@pytest.fixture
def scaling(library: Project) -> Experiment:
    link = {"bandwidth": "400 Mbit/s", "mtu": 9000}
    return measured(library, specification(link=link, repetitions=1, control=True), reported)


def test_it_studies_the_fastest_size_of_several_hosts_as_far_as_the_effects_matter(scaling: Experiment) -> None:
    spec = parse(network_draft(scaling))
    points = [point.parameters for point in design.expand(spec).configurations]
    assert {(p["hosts"], p["molecules"], p["link.mtu"]) for p in points} == {(4, 216, 9000)}
    assert max(p["link.delay"] for p in points) == pytest.approx(200e-6)  # 2 s / 10 000 messages
    assert min(p["link.bandwidth"] for p in points) == pytest.approx(100e6)  # 200 Mbit in 2 s
    assert len(points) == 10
    assert spec.repetitions == 2
    assert spec.order == "interleaved", "a drift must not look like an effect of the link"
    assert not spec.control


def test_it_takes_the_largest_size_while_nothing_is_measured(submit: Any) -> None:
    draft = network_draft(submit())
    assert draft["parameters"]["hosts"] == 4


def test_the_pages_lead_from_an_experiment_to_its_study_and_on(
    page: Client, scaling: Experiment, library: Project
) -> None:
    assert f"?network={scaling.slug}" in page.get(scaling.get_absolute_url()).text
    form = page.get("/experiments/new/", {"network": scaling.slug})
    assert form.context["preview"].trials == 20
    study = measured(library, NETWORK, needing)
    assert f'href="/network/{study.slug}/"' in page.get(study.get_absolute_url()).text


def test_it_leads_back_where_no_size_has_several_hosts(page: Client, submit: Any) -> None:
    alone = submit(sweep={"hosts": [1]})
    assert "?network=" not in page.get(alone.get_absolute_url()).text
